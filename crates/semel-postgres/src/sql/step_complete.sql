-- $1 key  $2 fence  $3 owner  $4 name  $5 result.  As step_restart.sql; already: it was recorded before, by this run or an earlier one
WITH own AS MATERIALIZED (
  SELECT r.key, r.born FROM semel.rec r
   WHERE r.key = $1::bytea AND r.fence = $2::bigint AND r.owner = $3::uuid AND r.state = 1 FOR SHARE SKIP LOCKED
), u AS (
  UPDATE semel.step s SET state = 2, result = $5::bytea FROM own o
   WHERE s.key = o.key AND s.born = o.born AND s.name = $4::text AND s.fence = $2::bigint AND s.state = 1
  RETURNING 1
)
SELECT EXISTS (SELECT 1 FROM own) AS held, EXISTS (SELECT 1 FROM u) AS done,
       EXISTS (SELECT 1 FROM semel.step s, own o
                WHERE s.key = o.key AND s.born = o.born AND s.name = $4::text AND s.state = 2) AS already
