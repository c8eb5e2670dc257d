-- $1 key  $2 retention.  A record that has not succeeded is kept for at least this long from now on. Like a renewal it only locks the record, whose run may be
-- in a handler's transaction: see semel.renewal. Never waits for the record. No row: look in a new statement
WITH q AS MATERIALIZED (
  SELECT r.key, r.fence, r.lease_until, GREATEST(r.expires_at, n.expires_at) AS expires_at
    FROM (SELECT r.key, r.fence, r.lease_until, r.expires_at FROM semel.rec r
           WHERE r.key = $1::bytea AND r.state IN (1, 3, 4) FOR NO KEY UPDATE SKIP LOCKED) r
   CROSS JOIN LATERAL semel.renewed(r.key, r.fence) n            -- asked once the record is locked
)
INSERT INTO semel.renewal AS n (key, fence, lease_until, expires_at)
SELECT q.key, q.fence, q.lease_until, GREATEST(q.expires_at, clock_timestamp() + $2::interval)
  FROM q WHERE q.expires_at > clock_timestamp()
ON CONFLICT (key) DO UPDATE SET fence = EXCLUDED.fence,
       lease_until = GREATEST(EXCLUDED.lease_until, CASE WHEN n.fence = EXCLUDED.fence THEN n.lease_until END),
       expires_at = GREATEST(EXCLUDED.expires_at, CASE WHEN n.fence = EXCLUDED.fence THEN n.expires_at END)
RETURNING n.key
