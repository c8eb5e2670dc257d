-- $1 limit.  Removes tombstones that have expired; never waits
DELETE FROM semel.letter WHERE id = ANY (ARRAY(
  SELECT id FROM semel.letter WHERE expires_at <= clock_timestamp() ORDER BY expires_at LIMIT $1::bigint FOR UPDATE SKIP LOCKED))
RETURNING 1
