-- $1 id.  An open letter
SELECT id, key, route, reason, fence, retention_us, redriven, alarmed, delivery FROM semel.letter
 WHERE id = $1::bytea AND expires_at IS NULL
