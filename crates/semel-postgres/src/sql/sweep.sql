-- $1, $2 a window of pages as tid  $3 grace.  Removes records that expired longer than the grace ago; never waits, so it cannot deadlock
WITH d AS (
  DELETE FROM semel.rec WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM semel.rec
     WHERE ctid >= $1::tid AND ctid < $2::tid
       AND state <> 5 AND expires_at <= clock_timestamp() - $3::interval
       AND NOT (state = 1 AND lease_until > clock_timestamp())
     FOR UPDATE SKIP LOCKED))
  RETURNING 1
)
SELECT (SELECT count(*) FROM d) AS removed, pg_relation_size('semel.rec') / current_setting('block_size')::bigint AS pages
