-- $1 key.  Refused (no row) while running under a live lease, and when absent. Ends the incarnation: result, steps, label, history and what the index has of it go at once, the row
-- stays as an expired one until sweep, so that the next grant finds the old fence and goes above it. Never waits
WITH q AS MATERIALIZED (
  SELECT r.at, n.fence AS renewed_by, n.lease_until AS renewed_until, n.expires_at AS renewed
    FROM (SELECT r.ctid AS at, r.key, r.fence FROM semel.rec r WHERE r.key = $1::bytea FOR UPDATE SKIP LOCKED) r
   CROSS JOIN LATERAL semel.renewed(r.key, r.fence) n            -- asked once the record is locked
), d AS (
  UPDATE semel.rec r SET state = 4, result = NULL,
         (lease_until, expires_at) = (SELECT c.n, c.n FROM (SELECT clock_timestamp() AS n, r.fence OFFSET 0) c)   -- one reading, after the lock
    FROM q
   WHERE r.ctid = q.at AND (r.state = 5 OR GREATEST(r.expires_at, q.renewed) > clock_timestamp())
     AND NOT (r.state = 1 AND GREATEST(r.lease_until, q.renewed_until) > clock_timestamp())
     -- a renewal that came after this statement's snapshot could not be removed below: again
     AND (q.renewed_by IS NULL OR EXISTS (SELECT 1 FROM semel.renewal n WHERE n.key = r.key AND n.fence = r.fence))
  RETURNING r.state, r.key, r.born
), s AS (
  DELETE FROM semel.step s USING d WHERE s.key = d.key
), n AS (
  DELETE FROM semel.renewal n USING d WHERE n.key = d.key
), l AS (
  DELETE FROM semel.label l USING d WHERE l.key = d.key AND l.born = d.born
), h AS (
  DELETE FROM semel.history h USING d WHERE h.key = d.key
), t AS (
  DELETE FROM semel.transport t USING d WHERE t.key = d.key
)
SELECT d.state FROM d
