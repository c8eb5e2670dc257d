-- $1, $2 a window of pages as tid.  Removes attempts whose incarnation has no record; never waits
WITH d AS (
  DELETE FROM semel.history WHERE ctid = ANY (ARRAY(
    SELECT h.ctid FROM semel.history h
     WHERE h.ctid >= $1::tid AND h.ctid < $2::tid
       AND NOT EXISTS (SELECT 1 FROM semel.rec r WHERE r.key = h.key AND r.born = h.born OFFSET 0)
     FOR UPDATE OF h SKIP LOCKED))
  RETURNING 1
)
SELECT (SELECT count(*) FROM d) AS removed, pg_relation_size('semel.history') / current_setting('block_size')::bigint AS pages
