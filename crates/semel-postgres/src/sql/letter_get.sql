-- $1 id
SELECT id, key, reason, delivery FROM semel.letter WHERE id = $1::bytea
