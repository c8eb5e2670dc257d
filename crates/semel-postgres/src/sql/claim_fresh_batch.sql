-- $1 key[]  $2 fp[]  $3 owner[]  $4 lease[]  $5 retention[].  claim_fresh.sql for many keys, which are distinct and sorted.
INSERT INTO semel.rec AS t (key, fp, state, attempts, born, fence, owner, lease_until, expires_at)
SELECT q.key, q.fp, 1, 1, (extract(epoch FROM now()) * 1000000)::bigint, (extract(epoch FROM now()) * 1000000)::bigint,
       q.owner, now() + q.lease, now() + q.lease + q.retention
  FROM /* local settings */ unnest($1::bytea[], $2::bytea[], $3::uuid[], $4::interval[], $5::interval[])
         AS q(key, fp, owner, lease, retention)
ON CONFLICT (key) DO NOTHING
RETURNING t.key, t.fence
