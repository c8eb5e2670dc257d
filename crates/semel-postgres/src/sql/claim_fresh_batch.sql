-- $1 key[]  $2 fp[]  $3 owner[]  $4 lease[]  $5 retention[]  $6 acts_for[].  claim_fresh.sql for many keys, which are distinct and sorted.
INSERT INTO semel.rec AS t (key, fp, state, attempts, born, fence, owner, lease_until, expires_at, acts_until)
SELECT q.key, q.fp, 1, 1, (extract(epoch FROM now()) * 1000000)::bigint, (extract(epoch FROM now()) * 1000000)::bigint,
       q.owner, now() + q.lease, now() + q.lease + q.retention, now() + q.acts_for
  FROM /* local settings */ unnest($1::bytea[], $2::bytea[], $3::uuid[], $4::interval[], $5::interval[],
         $6::interval[]) AS q(key, fp, owner, lease, retention, acts_for)
ON CONFLICT (key) DO NOTHING
RETURNING t.key, t.fence
