-- $1, $2 a window of pages as tid  $3 grace.  Removes records that expired longer than the grace ago; never waits, so it cannot deadlock
WITH d AS (
  DELETE FROM semel.rec WHERE ctid = ANY (ARRAY(
    SELECT x.ctid FROM (
      SELECT r.ctid, r.key, r.fence, r.state FROM semel.rec r
       WHERE r.ctid >= $1::tid AND r.ctid < $2::tid
         AND r.state <> 5 AND r.expires_at <= clock_timestamp() - $3::interval
         AND NOT (r.state = 1 AND r.lease_until > clock_timestamp())
         AND NOT EXISTS (SELECT 1 FROM semel.renewal n
                          WHERE n.key = r.key AND n.fence = r.fence AND n.expires_at > clock_timestamp() - $3::interval OFFSET 0)
       FOR UPDATE OF r SKIP LOCKED) x
    -- one that is still running may have been renewed since the snapshot: asked once it is locked
    LEFT JOIN LATERAL (SELECT n.expires_at FROM semel.renewed(x.key, x.fence) n WHERE x.state = 1) n ON true
     WHERE n.expires_at IS NULL OR n.expires_at <= clock_timestamp() - $3::interval))
  RETURNING 1
)
SELECT (SELECT count(*) FROM d) AS removed, pg_relation_size('semel.rec') / current_setting('block_size')::bigint AS pages
