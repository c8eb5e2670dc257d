-- $1 key[]  $2 fence[]  $3 owner[]  $4 lease[]  $5 retention[].  Keys distinct and sorted. Locks the record, so that nobody takes the
-- lease away meanwhile, and does not write it: see semel.renewal. Never waits for a record. A row for each that was renewed.
-- No row: it is held or no longer matches; look in a new statement
WITH q AS MATERIALIZED (
  SELECT r.key, r.fence, u.lease, u.retention, r.lease_until, r.expires_at
    FROM unnest($1::bytea[], $2::bigint[], $3::uuid[], $4::interval[], $5::interval[]) AS u(key, fence, owner, lease, retention)
   CROSS JOIN LATERAL (
      SELECT r.key, r.fence, r.lease_until, r.expires_at FROM semel.rec r
       WHERE r.key = u.key AND r.fence = u.fence AND r.owner = u.owner AND r.state = 1 FOR NO KEY UPDATE SKIP LOCKED) r
)
INSERT INTO semel.renewal AS n (key, fence, lease_until, expires_at)
SELECT q.key, q.fence, GREATEST(q.lease_until, clock_timestamp() + q.lease),
       GREATEST(q.expires_at, clock_timestamp() + q.lease + q.retention)
  FROM q
ON CONFLICT (key) DO UPDATE SET fence = EXCLUDED.fence,
       lease_until = GREATEST(EXCLUDED.lease_until, CASE WHEN n.fence = EXCLUDED.fence THEN n.lease_until END),
       expires_at = GREATEST(EXCLUDED.expires_at, CASE WHEN n.fence = EXCLUDED.fence THEN n.expires_at END)
RETURNING 1::smallint AS state, n.key
