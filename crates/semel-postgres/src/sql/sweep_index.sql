-- $1, $2 a window of pages as tid.  Removes what the index has kept for long enough; never waits
WITH d AS (
  DELETE FROM semel.transport WHERE ctid = ANY (ARRAY(
    SELECT t.ctid FROM semel.transport t
     WHERE t.ctid >= $1::tid AND t.ctid < $2::tid AND t.expires_at <= clock_timestamp()
     FOR UPDATE OF t SKIP LOCKED))
  RETURNING 1
)
SELECT (SELECT count(*) FROM d) AS removed, pg_relation_size('semel.transport') / current_setting('block_size')::bigint AS pages
