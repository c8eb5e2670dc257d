-- $1 key[]  $2 fence[]  $3 owner[]  $4 result[]  $5 retention[].  Keys distinct and sorted. Waits for a held row as long as the session
-- says, then fails as a whole. A row for each key that was written. No row: it no longer matches; look in a new statement
UPDATE semel.rec r SET state = 2, result = q.result, lease_until = clock_timestamp(),
       expires_at = GREATEST(r.expires_at, clock_timestamp() + q.retention,
                             (SELECT n.expires_at FROM semel.renewal n WHERE n.key = r.key AND n.fence = r.fence))
  FROM unnest($1::bytea[], $2::bigint[], $3::uuid[], $4::bytea[], $5::interval[]) AS q(key, fence, owner, result, retention)
 WHERE r.key = q.key AND r.fence = q.fence AND r.owner = q.owner AND r.state IN (1, 5)
RETURNING r.state, r.key
