-- $1 key  $2 by.  running or waiting -> waiting, claimable at once; a run in hand is stale from then on. Never waits. No row: look in a new statement
WITH q AS MATERIALIZED (
  SELECT r.at, n.expires_at AS renewed, CASE WHEN r.was = 1 THEN n.lease_until END AS renewed_until, r.fence AS was_fence, r.was,
         r.was_in_doubt, GREATEST(r.was_until, CASE WHEN r.was = 1 THEN n.lease_until END) AS was_until, r.was_result
    FROM (SELECT r.ctid AS at, r.key, r.fence, /* was */ FROM semel.rec r WHERE r.key = $1::bytea FOR UPDATE SKIP LOCKED) r
   CROSS JOIN LATERAL semel.renewed(r.key, r.fence) n            -- asked once the record is locked
), d AS (
UPDATE semel.rec r SET state = 4, in_doubt = r.in_doubt OR r.state = 1, result = CASE WHEN r.state <> 1 THEN r.result END,
       fence = GREATEST(r.fence + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
       lease_until = clock_timestamp(), expires_at = GREATEST(r.expires_at, q.renewed,
                             clock_timestamp() + (GREATEST(r.expires_at, q.renewed) - GREATEST(r.lease_until, q.renewed_until)))
  FROM q WHERE r.ctid = q.at AND r.state IN (1, 4) AND GREATEST(r.expires_at, q.renewed) > clock_timestamp()
RETURNING r.key, r.born, r.state, q.was_fence, q.was, q.was_in_doubt, q.was_until, q.was_result, $2::bytea AS who
) /* history */
SELECT d.state FROM d
