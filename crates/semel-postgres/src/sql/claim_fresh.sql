-- $1 key  $2 fp  $3 owner  $4 lease  $5 retention  $6 acts_for or NULL.  Grants an absent key, and does nothing else. No row: it has a record; claim.sql shows it.
-- Waits for whoever is changing that record as long as the session says
INSERT INTO semel.rec AS t (key, fp, state, attempts, born, fence, owner, lease_until, expires_at, acts_until)
SELECT $1::bytea, $2::bytea, 1, 1, (extract(epoch FROM now()) * 1000000)::bigint, (extract(epoch FROM now()) * 1000000)::bigint,
       $3::uuid, now() + $4::interval, now() + $4::interval + $5::interval, now() + $6::interval
  FROM /* local settings */ (VALUES (1)) AS one
ON CONFLICT (key) DO NOTHING
RETURNING t.key, t.fence
