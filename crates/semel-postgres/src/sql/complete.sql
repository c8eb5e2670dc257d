-- $1 key  $2 fence  $3 owner  $4 result  $5 retention.  One row: applied. No row: look in a new statement
UPDATE semel.rec r SET state = 2, result = $4::bytea, lease_until = clock_timestamp(),
       expires_at = GREATEST(r.expires_at, clock_timestamp() + $5::interval,
                             (SELECT n.expires_at FROM semel.renewal n WHERE n.key = r.key AND n.fence = r.fence))
 WHERE r.key = $1::bytea AND r.fence = $2::bigint AND r.owner = $3::uuid AND r.state IN (1, 5)
RETURNING r.state, r.key
