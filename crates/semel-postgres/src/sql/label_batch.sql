-- $1 key[]  $7 label[].  label.sql for many keys, some of which have no label
INSERT INTO semel.label (key, born, label)
SELECT q.key, (extract(epoch FROM now()) * 1000000)::bigint, q.label FROM unnest($1::bytea[], $7::bytea[]) AS q(key, label)
 WHERE q.label <> '' AND (q.key IN (SELECT w.key FROM win w)) IS TRUE    -- IS TRUE: looked up in a hash, never joined row by row
