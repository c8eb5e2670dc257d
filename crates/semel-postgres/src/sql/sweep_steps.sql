-- $1, $2 a window of pages as tid.  Removes steps whose incarnation has no record; never waits
WITH d AS (
  DELETE FROM semel.step WHERE ctid = ANY (ARRAY(
    SELECT s.ctid FROM semel.step s
     WHERE s.ctid >= $1::tid AND s.ctid < $2::tid
       AND NOT EXISTS (SELECT 1 FROM semel.rec r WHERE r.key = s.key AND r.born = s.born OFFSET 0)
     FOR UPDATE OF s SKIP LOCKED))
  RETURNING 1
)
SELECT (SELECT count(*) FROM d) AS removed, pg_relation_size('semel.step') / current_setting('block_size')::bigint AS pages
