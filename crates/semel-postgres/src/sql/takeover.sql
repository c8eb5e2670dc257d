-- $1 key[]  $2 fp[]  $3 owner[]  $4 lease[]  $5 retention[]  $6 acts_for[]  $7 label[]  $8 in_doubt[] (0 retry, 1 park, 2 probe)
-- $9 max_attempts[]  $10 max_in_doubt[], and $11 the age in µs that the first doubt must have for it  $12 park_after[] in µs (each NULL: no limit)
-- $13 by[].  Claims keys that have a record: expired, waiting and due, or lapsed; one in doubt, to probe, once its run acts no more. Never waits for a
-- row. No row for a key: it is held or has changed, so claim again.
WITH q AS MATERIALIZED (
  SELECT r.at, n.lease_until AS renewed_until, n.expires_at AS renewed, r.fence AS was_fence, r.was, r.was_in_doubt, r.was_result,
         GREATEST(r.was_until, CASE WHEN r.was = 1 THEN n.lease_until END) AS was_until, u.*
    FROM unnest($1::bytea[], $2::bytea[], $3::uuid[], $4::interval[], $5::interval[], $6::interval[], $7::bytea[], $8::int[], $9::int[],
                $10::int[], $11::bigint[], $12::bigint[], $13::bytea[])
           AS u(key, fp, owner, lease, retention, acts_for, label, in_doubt, max_attempts, max_in_doubt, doubt_age, park_after, who)
   CROSS JOIN LATERAL (SELECT r.ctid AS at, r.key, r.fence, /* was */ FROM semel.rec r WHERE r.key = u.key FOR UPDATE SKIP LOCKED) r
   CROSS JOIN LATERAL semel.renewed(r.key, r.fence) n            -- asked once the record is locked
), win AS (
UPDATE semel.rec t SET
  (fp, state, attempts, doubts, doubted_at, in_doubt, acts_until, born, fence, owner, lease_until, expires_at, result) =
  (SELECT q.fp,
          CASE WHEN d.park THEN 5 ELSE 1 END,
          CASE WHEN d.fresh THEN 1 WHEN d.park THEN t.attempts ELSE t.attempts + 1 END,
          CASE WHEN d.fresh THEN 0 ELSE d.doubts END,
          CASE WHEN NOT d.fresh THEN d.doubted_at END,
          NOT d.fresh AND (t.state = 1 OR t.in_doubt),
          CASE WHEN d.park THEN t.acts_until ELSE d.n + q.acts_for END,
          CASE WHEN d.fresh THEN d.f ELSE t.born END,
          CASE WHEN d.park THEN t.fence ELSE d.f END,
          CASE WHEN d.park THEN t.owner ELSE q.owner END,
          CASE WHEN d.park THEN GREATEST(t.lease_until, q.renewed_until) ELSE d.n + q.lease END,
          GREATEST(t.expires_at, q.renewed, d.n + q.lease + q.retention),
          CASE WHEN t.state = 4 AND t.in_doubt AND NOT d.fresh THEN t.result END    -- why the run before is in doubt
     FROM (SELECT b.n, b.fresh, b.doubts, b.doubted_at, GREATEST(t.fence + 1, b.us) AS f,
                  NOT b.fresh AND t.state = 1
                    AND (q.in_doubt = 1 OR t.attempts >= q.max_attempts
                         OR (b.doubts >= q.max_in_doubt AND GREATEST((extract(epoch FROM b.n - b.doubted_at) * 1000000)::bigint, 0) >= q.doubt_age)
                         OR (t.attempts >= 5 AND GREATEST(b.us - t.born, 0) >= q.park_after)) IS TRUE AS park
             -- fresh is told from the row: a settled one, or one of another fingerprint, can only be here as expired
             FROM (SELECT c.n, (extract(epoch FROM c.n) * 1000000)::bigint AS us, t.doubts + (t.state = 1)::int AS doubts,
                          CASE WHEN t.state = 1 THEN COALESCE(t.doubted_at, c.n) ELSE t.doubted_at END AS doubted_at,
                          t.state IN (2, 3) OR t.fp <> q.fp OR GREATEST(t.expires_at, q.renewed) <= c.n AS fresh
                     FROM (SELECT clock_timestamp() AS n OFFSET 0) c OFFSET 0) b OFFSET 0) d)    -- one reading of the clock, after the lock
  FROM q
 WHERE t.ctid = q.at
   AND ((t.state <> 5 AND GREATEST(t.expires_at, q.renewed) <= clock_timestamp())
     OR (t.fp = q.fp AND (q.in_doubt = 2 AND (t.state = 1 OR t.in_doubt) AND t.acts_until > clock_timestamp()) IS NOT TRUE
         AND ((t.state = 1 AND GREATEST(t.lease_until, q.renewed_until) <= clock_timestamp())
           OR (t.state = 4 AND t.lease_until <= clock_timestamp()))))
RETURNING t.key, t.fence, t.born, t.attempts, t.state, t.in_doubt, q.label, q.who, q.was_fence, q.was, q.was_in_doubt, q.was_until, q.was_result
), label AS (                           -- of those that begin an incarnation
  INSERT INTO semel.label (key, born, label)
  SELECT w.key, w.born, w.label FROM win w WHERE w.state = 1 AND w.fence = w.born AND w.label <> ''
), d AS (                               -- those that go on with one
  SELECT w.* FROM win w WHERE w.state = 1 AND w.fence <> w.born
) /* history */
SELECT key, fence, born, attempts, state, in_doubt FROM win
