-- $1 the last key seen (start: '')  $2 how many rows to read  $3 state, 0: any  $4 how many to show.  By the primary key, no other index.
-- At least one row, which says how far this page read: read rows, the last of them, then the records that match
WITH page AS MATERIALIZED (
  SELECT r.key, r.fence, r.born, r.attempts, r.state, r.owner, r.lease_until, r.expires_at, r.fp
    FROM semel.rec r WHERE r.key > $1::bytea ORDER BY r.key LIMIT $2::bigint
)
SELECT m.fence, m.born, m.attempts, m.state, m.owner, m.lease_until, m.expires_at, m.fp, NULL::bytea AS result, clock_timestamp() AS now,
       m.key, (SELECT count(*) FROM page) AS read, (SELECT key FROM page ORDER BY key DESC LIMIT 1) AS last
  FROM (VALUES (1)) AS always LEFT JOIN (
    SELECT * FROM page p
     WHERE ($3::smallint = 0 OR p.state = $3::smallint) AND (p.state = 5 OR p.expires_at > clock_timestamp())
     ORDER BY p.key LIMIT $4::bigint) m ON true
 ORDER BY m.key
