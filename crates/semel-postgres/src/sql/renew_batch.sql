-- $1 key[]  $2 fence[]  $3 owner[]  $4 lease[]  $5 retention[].  As complete_careful.sql
WITH q AS MATERIALIZED (
  SELECT r.at, u.lease, u.retention
    FROM unnest($1::bytea[], $2::bigint[], $3::uuid[], $4::interval[], $5::interval[]) AS u(key, fence, owner, lease, retention)
   CROSS JOIN LATERAL (
      SELECT r.ctid AS at FROM semel.rec r
       WHERE r.key = u.key AND r.fence = u.fence AND r.owner = u.owner AND r.state = 1 FOR UPDATE SKIP LOCKED) r
)
UPDATE semel.rec r SET lease_until = GREATEST(r.lease_until, clock_timestamp() + q.lease),
       expires_at = GREATEST(r.expires_at, clock_timestamp() + q.lease + q.retention)
  FROM q WHERE r.ctid = q.at
RETURNING r.state, r.key
