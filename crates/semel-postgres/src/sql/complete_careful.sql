-- $1 key[]  $2 fence[]  $3 owner[]  $4 result[]  $5 retention[].  As complete_batch.sql, but never waits for a row.
-- A row for each key that was written. No row: it is held or no longer matches; look in a new statement
WITH q AS MATERIALIZED (
  SELECT r.at, u.result, u.retention
    FROM unnest($1::bytea[], $2::bigint[], $3::uuid[], $4::bytea[], $5::interval[]) AS u(key, fence, owner, result, retention)
   CROSS JOIN LATERAL (
      SELECT r.ctid AS at FROM semel.rec r
       WHERE r.key = u.key AND r.fence = u.fence AND r.owner = u.owner AND r.state IN (1, 5) FOR UPDATE SKIP LOCKED) r
)
UPDATE semel.rec r SET state = 2, result = q.result, lease_until = clock_timestamp(),
       expires_at = GREATEST(r.expires_at, clock_timestamp() + q.retention,
                             (SELECT n.expires_at FROM semel.renewal n WHERE n.key = r.key AND n.fence = r.fence))
  FROM q WHERE r.ctid = q.at
RETURNING r.state, r.key
