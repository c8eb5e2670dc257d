-- $1, $2 a window of pages as tid.  Removes labels whose incarnation has no record; never waits
WITH d AS (
  DELETE FROM semel.label WHERE ctid = ANY (ARRAY(
    SELECT l.ctid FROM semel.label l
     WHERE l.ctid >= $1::tid AND l.ctid < $2::tid
       AND NOT EXISTS (SELECT 1 FROM semel.rec r WHERE r.key = l.key AND r.born = l.born OFFSET 0)
     FOR UPDATE OF l SKIP LOCKED))
  RETURNING 1
)
SELECT (SELECT count(*) FROM d) AS removed, pg_relation_size('semel.label') / current_setting('block_size')::bigint AS pages
