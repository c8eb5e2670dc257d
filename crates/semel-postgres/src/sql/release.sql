-- $1 key  $2 fence  $3 owner  $4 park_after in µs or NULL.  Only when nothing was sent: -> waiting, or parked when it is old; one that is old and
-- parked is not written. Never waits. One row: applied. No row: look in a new statement
WITH q AS MATERIALIZED (
  SELECT r.at, n.expires_at AS renewed, CASE WHEN r.state = 1 THEN n.lease_until END AS renewed_until,
         (GREATEST((extract(epoch FROM clock_timestamp()) * 1000000)::bigint - r.born, 0) >= $4::bigint) IS TRUE AS old
    FROM (SELECT r.ctid AS at, r.key, r.fence, r.born, r.state FROM semel.rec r
           WHERE r.key = $1::bytea AND r.fence = $2::bigint AND r.owner = $3::uuid AND r.state IN (1, 5) FOR UPDATE SKIP LOCKED) r
   CROSS JOIN LATERAL semel.renewed(r.key, r.fence) n            -- asked once the record is locked
)
UPDATE semel.rec r SET state = CASE WHEN q.old THEN 5 ELSE 4 END, attempts = GREATEST(r.attempts - 1, 0), acts_until = NULL,
       result = CASE WHEN r.in_doubt THEN r.result END, lease_until = clock_timestamp(),
       expires_at = GREATEST(r.expires_at, q.renewed,
                             clock_timestamp() + (GREATEST(r.expires_at, q.renewed) - GREATEST(r.lease_until, q.renewed_until)))
  FROM q WHERE r.ctid = q.at AND NOT (q.old AND r.state = 5)
RETURNING r.state, r.key
