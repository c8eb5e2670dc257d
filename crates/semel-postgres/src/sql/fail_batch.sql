-- $1 key[]  $2 fence[]  $3 owner[]  $4 kind[] (1 final, 2 retryable, 3 in doubt, 4 still in doubt)  $5 in_doubt[] (0 retry, 1 park, 2 probe)
-- $6 max_attempts[]  $7 max_in_doubt[], and $8 the age in µs that the first doubt must have for it  $9 park_after[] in µs (each NULL: no limit)
-- $10 delay[] (0 of a final one)  $11 retention[]  $12 result[].  As complete_careful.sql; the row has the next state
WITH q AS MATERIALIZED (
  SELECT r.at, u.*,
         r.doubts + (u.kind = 3 AND r.state = 1)::int AS doubts,    -- one that is parked was counted when it got there
         CASE WHEN u.kind = 3 AND r.state = 1 THEN COALESCE(r.doubted_at, r.now) ELSE r.doubted_at END AS doubted_at,
         CASE WHEN u.kind = 4 THEN r.in_doubt ELSE u.kind = 3 END AS doubted, r.now
    FROM unnest($1::bytea[], $2::bigint[], $3::uuid[], $4::int[], $5::int[], $6::int[], $7::int[], $8::bigint[], $9::bigint[],
                $10::interval[], $11::interval[], $12::bytea[])
           AS u(key, fence, owner, kind, in_doubt, max_attempts, max_in_doubt, doubt_age, park_after, delay, retention, result)
   CROSS JOIN LATERAL (
      SELECT r.ctid AS at, r.state, r.doubts, r.doubted_at, r.in_doubt, clock_timestamp() AS now FROM semel.rec r
       WHERE r.key = u.key AND r.fence = u.fence AND r.owner = u.owner AND r.state IN (1, 5) FOR UPDATE SKIP LOCKED) r
)
UPDATE semel.rec r SET
       state = CASE WHEN q.kind = 1 THEN 3
                    WHEN q.kind = 3 AND q.in_doubt = 1 THEN 5
                    WHEN r.attempts >= q.max_attempts
                         OR (q.doubted AND q.doubts >= q.max_in_doubt
                             AND GREATEST((extract(epoch FROM q.now - q.doubted_at) * 1000000)::bigint, 0) >= q.doubt_age)
                         OR (r.attempts >= 5 AND GREATEST((extract(epoch FROM clock_timestamp()) * 1000000)::bigint - r.born, 0) >= q.park_after)
                      THEN 5
                    ELSE 4 END,
       doubts = q.doubts, doubted_at = q.doubted_at, in_doubt = q.doubted, acts_until = CASE WHEN q.kind <> 4 THEN r.acts_until END,
       result = q.result, lease_until = clock_timestamp() + q.delay,
       expires_at = GREATEST(r.expires_at, clock_timestamp() + q.delay + q.retention,
                             (SELECT n.expires_at FROM semel.renewal n WHERE n.key = r.key AND n.fence = r.fence))
  FROM q WHERE r.ctid = q.at
RETURNING r.state, r.key
