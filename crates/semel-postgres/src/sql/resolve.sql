-- $1 key  $2 decision (2 succeeded, 3 failed, 4 run again)  $3 result  $4 fence or NULL  $5 by.  NULL: parked only. A fence: that very run, parked or
-- lapsed. Never waits. No row: look in a new statement
WITH q AS MATERIALIZED (
  SELECT r.at, n.expires_at AS renewed, CASE WHEN r.was = 1 THEN n.lease_until END AS renewed_until, r.fence AS was_fence, r.was,
         r.was_in_doubt, GREATEST(r.was_until, CASE WHEN r.was = 1 THEN n.lease_until END) AS was_until, r.was_result
    FROM (SELECT r.ctid AS at, r.key, r.fence, /* was */ FROM semel.rec r WHERE r.key = $1::bytea FOR UPDATE SKIP LOCKED) r
   CROSS JOIN LATERAL semel.renewed(r.key, r.fence) n            -- asked once the record is locked
), d AS (
UPDATE semel.rec r SET state = $2::smallint, in_doubt = false,
       result = CASE WHEN $2::smallint <> 4 THEN $3::bytea WHEN r.state <> 1 THEN r.result END,
       fence = GREATEST(r.fence + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
       lease_until = clock_timestamp(), expires_at = GREATEST(r.expires_at, q.renewed,
                             clock_timestamp() + (GREATEST(r.expires_at, q.renewed) - GREATEST(r.lease_until, q.renewed_until)))
  FROM q WHERE r.ctid = q.at AND ($4::bigint IS NULL OR r.fence = $4::bigint) AND $2::smallint IN (2, 3, 4)
   AND (r.state = 5
        OR ($4::bigint IS NOT NULL AND r.state = 1 AND GREATEST(r.lease_until, q.renewed_until) <= clock_timestamp()
            AND GREATEST(r.expires_at, q.renewed) > clock_timestamp()))
RETURNING r.key, r.born, r.state, q.was_fence, q.was, q.was_in_doubt, q.was_until, q.was_result, $5::bytea AS who
) /* history */
SELECT d.state FROM d
