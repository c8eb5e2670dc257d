-- $1 key.  parked or failed -> waiting, claimable at once; born and steps stay. Never waits. No row: look in a new statement
WITH q AS MATERIALIZED (SELECT r.ctid AS at FROM semel.rec r WHERE r.key = $1::bytea FOR UPDATE SKIP LOCKED)
UPDATE semel.rec r SET state = 4, fence = GREATEST(r.fence + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
       lease_until = clock_timestamp(), expires_at = GREATEST(r.expires_at, clock_timestamp() + (r.expires_at - r.lease_until))
  FROM q WHERE r.ctid = q.at AND (r.state = 5 OR (r.state = 3 AND r.expires_at > clock_timestamp()))
RETURNING r.state
