-- $1 key  $2 how many  $3 how many bytes of each result.  The steps of the incarnation that is there, by name
SELECT s.name, s.fence, s.state = 2 AS done, substr(s.result, 1, $3::int) AS result
  FROM semel.rec r LEFT JOIN semel.renewal n ON n.key = r.key AND n.fence = r.fence
  JOIN semel.step s ON s.key = r.key AND s.born = r.born
 WHERE r.key = $1::bytea AND (r.state = 5 OR GREATEST(r.expires_at, n.expires_at) > clock_timestamp())
 ORDER BY s.name COLLATE "C" LIMIT $2::bigint
