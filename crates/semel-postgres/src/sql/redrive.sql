-- $1 key  $2 by.  parked or failed -> waiting, claimable at once; born and steps stay. Never waits. No row: look in a new statement
WITH q AS MATERIALIZED (
  SELECT r.at, n.expires_at AS renewed, r.fence AS was_fence, r.was, r.was_in_doubt, r.was_until, r.was_result
    FROM (SELECT r.ctid AS at, r.key, r.fence, /* was */ FROM semel.rec r WHERE r.key = $1::bytea FOR UPDATE SKIP LOCKED) r
   CROSS JOIN LATERAL semel.renewed(r.key, r.fence) n            -- asked once the record is locked
), d AS (
UPDATE semel.rec r SET state = 4, fence = GREATEST(r.fence + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
       lease_until = clock_timestamp(), expires_at = GREATEST(r.expires_at, q.renewed, clock_timestamp() + (GREATEST(r.expires_at, q.renewed) - r.lease_until))
  FROM q WHERE r.ctid = q.at AND (r.state = 5 OR (r.state = 3 AND GREATEST(r.expires_at, q.renewed) > clock_timestamp()))
RETURNING r.key, r.born, r.state, q.was_fence, q.was, q.was_in_doubt, q.was_until, q.was_result, $2::bytea AS who
) /* history */
SELECT d.state FROM d
