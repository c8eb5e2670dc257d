-- $1 key[]  $2 fp[]  $3 owner[]  $4 lease[]  $5 retention[]  $6 acts_for[].  claim.sql for many keys, which are distinct and sorted.
WITH seen AS MATERIALIZED (
  SELECT q.key, q.fp AS want_fp, q.owner AS want_owner, q.lease, q.retention, q.acts_for, r.*
    FROM /* local settings */ unnest($1::bytea[], $2::bytea[], $3::uuid[], $4::interval[], $5::interval[],
           $6::interval[]) AS q(key, fp, owner, lease, retention, acts_for)
    LEFT JOIN LATERAL (
      SELECT r.fence, r.born, r.attempts, r.state, r.owner, GREATEST(r.lease_until, n.lease_until) AS lease_until,
             GREATEST(r.expires_at, n.expires_at) AS expires_at, r.fp, r.result, r.doubts, r.in_doubt, r.acts_until, r.doubted_at
        FROM semel.rec r
        LEFT JOIN LATERAL (             -- looked for only where it can change the answer
          SELECT CASE WHEN r.state = 1 THEN n.lease_until END AS lease_until, n.expires_at
            FROM semel.renewal n
           WHERE (r.state IN (1, 3) OR r.expires_at <= clock_timestamp()) AND n.key = r.key AND n.fence = r.fence OFFSET 0) n ON true
       WHERE r.key = q.key OFFSET 0) r ON true    -- OFFSET 0: one look-up per key, whatever the statistics say
), win AS (
  INSERT INTO semel.rec AS t (key, fp, state, attempts, born, fence, owner, lease_until, expires_at, acts_until)
  SELECT s.key, s.want_fp, 1, 1, (extract(epoch FROM now()) * 1000000)::bigint, (extract(epoch FROM now()) * 1000000)::bigint,
         s.want_owner, now() + s.lease, now() + s.lease + s.retention, now() + s.acts_for
    FROM seen s WHERE s.fence IS NULL
  ON CONFLICT (key) DO NOTHING
  RETURNING t.key, t.fence
) /* label */
SELECT key, fence, fence AS born, 1 AS attempts, 1::smallint AS state, NULL::uuid AS owner, NULL::timestamptz AS lease_until,
       NULL::timestamptz AS expires_at, NULL::bytea AS fp, NULL::bytea AS result, NULL::timestamptz AS now,
       0 AS doubts, false AS in_doubt, NULL::timestamptz AS acts_until, NULL::timestamptz AS doubted_at FROM win
UNION ALL
SELECT key, fence, born, attempts, state, owner, lease_until, expires_at, fp, result, clock_timestamp(),
       doubts, in_doubt, acts_until, doubted_at FROM seen WHERE fence IS NOT NULL
