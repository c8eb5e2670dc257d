-- $1 the last key seen (start: '')  $2 how many rows to read  $3 state, 0: any  $4 how many to show.  By the primary key, no other index.
-- At least one row, which says how far this page read: read rows, the last of them, then the records that match
WITH page AS MATERIALIZED (
  SELECT r.key, r.fence, r.born, r.attempts, r.state, r.owner,
         GREATEST(r.lease_until, CASE WHEN r.state = 1 THEN n.lease_until END) AS lease_until,
         GREATEST(r.expires_at, n.expires_at) AS expires_at, r.fp, r.doubts, r.in_doubt, r.acts_until, r.doubted_at
    FROM (SELECT r.* FROM semel.rec r WHERE r.key > $1::bytea ORDER BY r.key LIMIT $2::bigint) r
    LEFT JOIN LATERAL (SELECT * FROM semel.renewal n WHERE n.key = r.key AND n.fence = r.fence OFFSET 0) n ON true
)
SELECT m.fence, m.born, m.attempts, m.state, m.owner, m.lease_until, m.expires_at, m.fp, NULL::bytea AS result, clock_timestamp() AS now,
       m.doubts, m.in_doubt, m.acts_until, m.doubted_at, m.key, (SELECT count(*) FROM page) AS read, (SELECT key FROM page ORDER BY key DESC LIMIT 1) AS last
  FROM (VALUES (1)) AS always LEFT JOIN (
    SELECT * FROM page p
     WHERE ($3::smallint = 0 OR p.state = $3::smallint) AND (p.state = 5 OR p.expires_at > clock_timestamp())
     ORDER BY p.key LIMIT $4::bigint) m ON true
 ORDER BY m.key
