-- $1 key  $2 fence  $3 owner.  Only when nothing was sent. Never waits. One row: applied. No row: look in a new statement
WITH q AS MATERIALIZED (
  SELECT r.at, n.expires_at AS renewed, CASE WHEN r.state = 1 THEN n.lease_until END AS renewed_until
    FROM (SELECT r.ctid AS at, r.key, r.fence, r.state FROM semel.rec r
           WHERE r.key = $1::bytea AND r.fence = $2::bigint AND r.owner = $3::uuid AND r.state IN (1, 5) FOR UPDATE SKIP LOCKED) r
   CROSS JOIN LATERAL semel.renewed(r.key, r.fence) n            -- asked once the record is locked
)
UPDATE semel.rec r SET state = 4, attempts = GREATEST(r.attempts - 1, 0), acts_until = NULL,
       result = CASE WHEN r.in_doubt THEN r.result END, lease_until = clock_timestamp(),
       expires_at = GREATEST(r.expires_at, q.renewed,
                             clock_timestamp() + (GREATEST(r.expires_at, q.renewed) - GREATEST(r.lease_until, q.renewed_until)))
  FROM q WHERE r.ctid = q.at
RETURNING r.state, r.key
