-- $1 key  $2 fence  $3 idle  $4 by.  waiting or lapsed -> parked, if it is of this very run and has been due for so long; fence and owner stay. Never
-- waits. No row: look in a new statement
WITH q AS MATERIALIZED (
  SELECT r.at, n.expires_at AS renewed, CASE WHEN r.was = 1 THEN n.lease_until END AS renewed_until, r.fence AS was_fence, r.was,
         r.was_in_doubt, GREATEST(r.was_until, CASE WHEN r.was = 1 THEN n.lease_until END) AS was_until, r.was_result
    FROM (SELECT r.ctid AS at, r.key, r.fence, /* was */ FROM semel.rec r
           WHERE r.key = $1::bytea AND r.fence = $2::bigint AND r.state IN (1, 4) FOR UPDATE SKIP LOCKED) r
   CROSS JOIN LATERAL semel.renewed(r.key, r.fence) n            -- asked once the record is locked
), d AS (
UPDATE semel.rec r SET state = 5, doubts = r.doubts + (r.state = 1)::int, in_doubt = r.in_doubt OR r.state = 1,
       result = CASE WHEN r.state <> 1 THEN r.result END,
       lease_until = GREATEST(r.lease_until, q.renewed_until), expires_at = GREATEST(r.expires_at, q.renewed)
  FROM q WHERE r.ctid = q.at AND GREATEST(r.lease_until, q.renewed_until) + $3::interval <= clock_timestamp()
   AND GREATEST(r.expires_at, q.renewed) > clock_timestamp()
RETURNING r.key, r.born, r.state, q.was_fence, q.was, q.was_in_doubt, q.was_until, q.was_result, $4::bytea AS who
) /* history */
SELECT d.state FROM d
