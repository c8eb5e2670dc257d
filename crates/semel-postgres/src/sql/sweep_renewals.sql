-- $1, $2 a window of pages as tid.  Removes renewals of runs that are over: their record is gone, or is not running and has another fence or
-- keeps as long without them. One of a key that runs is left alone, whosever it is: the run writes it, and must not wait for a sweep. Never waits
WITH d AS (
  DELETE FROM semel.renewal WHERE ctid = ANY (ARRAY(
    SELECT n.ctid FROM semel.renewal n
     WHERE n.ctid >= $1::tid AND n.ctid < $2::tid
       AND NOT EXISTS (SELECT 1 FROM semel.rec r
                        WHERE r.key = n.key AND (r.state = 1 OR (r.fence = n.fence AND r.expires_at < n.expires_at)) OFFSET 0)
     FOR UPDATE OF n SKIP LOCKED))
  RETURNING 1
)
SELECT (SELECT count(*) FROM d) AS removed, pg_relation_size('semel.renewal') / current_setting('block_size')::bigint AS pages
