-- $1 key[]  $2 fence[]  $3 owner[]  $4 kind[] (1 final, 2 retryable, 3 in doubt)  $5 park[]  $6 max_attempts[] (0: no limit)
-- $7 delay[] (0 of a final one)  $8 retention[]  $9 result[].  As complete_careful.sql; the row has the next state
WITH q AS MATERIALIZED (
  SELECT r.at, u.*
    FROM unnest($1::bytea[], $2::bigint[], $3::uuid[], $4::int[], $5::bool[], $6::int[], $7::interval[], $8::interval[], $9::bytea[])
           AS u(key, fence, owner, kind, park, max_attempts, delay, retention, result)
   CROSS JOIN LATERAL (
      SELECT r.ctid AS at FROM semel.rec r
       WHERE r.key = u.key AND r.fence = u.fence AND r.owner = u.owner AND r.state IN (1, 5) FOR UPDATE SKIP LOCKED) r
)
UPDATE semel.rec r SET
       state = CASE WHEN q.kind = 1 THEN 3
                    WHEN q.kind = 3 AND q.park THEN 5
                    WHEN r.attempts < COALESCE(NULLIF(q.max_attempts, 0), 2147483647) THEN 4
                    ELSE 5 END,
       result = q.result, lease_until = clock_timestamp() + q.delay,
       expires_at = GREATEST(r.expires_at, clock_timestamp() + q.delay + q.retention,
                             (SELECT n.expires_at FROM semel.renewal n WHERE n.key = r.key AND n.fence = r.fence))
  FROM q WHERE r.ctid = q.at
RETURNING r.state, r.key
