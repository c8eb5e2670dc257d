-- $1 key.  Refused (no row) while running under a live lease, and when absent. Ends the incarnation: result and steps go at once, the row
-- stays as an expired one until sweep, so that the next grant finds the old fence and goes above it. Never waits
WITH q AS MATERIALIZED (SELECT r.ctid AS at FROM semel.rec r WHERE r.key = $1::bytea FOR UPDATE SKIP LOCKED
), d AS (
  UPDATE semel.rec r SET state = 4, result = NULL,
         (lease_until, expires_at) = (SELECT c.n, c.n FROM (SELECT clock_timestamp() AS n, r.fence OFFSET 0) c)   -- one reading, after the lock
    FROM q
   WHERE r.ctid = q.at AND (r.state = 5 OR r.expires_at > clock_timestamp())
     AND NOT (r.state = 1 AND r.lease_until > clock_timestamp())
  RETURNING r.state, r.key
), s AS (
  DELETE FROM semel.step s USING d WHERE s.key = d.key
)
SELECT d.state FROM d
