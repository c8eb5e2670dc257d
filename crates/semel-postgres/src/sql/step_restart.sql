-- $1 key  $2 fence  $3 owner  $4 name.  Policy retry, after in doubt. held: whether the run still holds its record; done: it is this run's now
WITH own AS MATERIALIZED (
  SELECT r.key, r.born FROM semel.rec r
   WHERE r.key = $1::bytea AND r.fence = $2::bigint AND r.owner = $3::uuid AND r.state = 1 FOR SHARE SKIP LOCKED
), u AS (
  UPDATE semel.step s SET fence = $2::bigint FROM own o
   WHERE s.key = o.key AND s.born = o.born AND s.name = $4::text AND s.state = 1
  RETURNING 1
)
SELECT EXISTS (SELECT 1 FROM own) AS held, EXISTS (SELECT 1 FROM u) AS done, false AS already
