-- $1 key  $2 fence  $3 owner  $4 name.  state: 0 run it, 1 started by the run with this fence, 2 done.  Never waits for the record.
-- No row: look in a new statement; still running under this fence = the record was held or the same step was begun just now: again
WITH own AS MATERIALIZED (
  SELECT r.key, r.born FROM semel.rec r
   WHERE r.key = $1::bytea AND r.fence = $2::bigint AND r.owner = $3::uuid AND r.state = 1 FOR SHARE SKIP LOCKED
), ins AS (
  INSERT INTO semel.step AS s (key, born, name, fence, state) SELECT o.key, o.born, $4::text, $2::bigint, 1 FROM own o
  ON CONFLICT (key, born, name) DO NOTHING
  RETURNING s.fence
)
SELECT 0::smallint AS state, fence, NULL::bytea AS result FROM ins
UNION ALL
SELECT s.state, s.fence, s.result FROM semel.step s, own o
 WHERE s.key = o.key AND s.born = o.born AND s.name = $4::text AND NOT EXISTS (SELECT 1 FROM ins)
