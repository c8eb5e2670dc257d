-- $1 id.  One row: it is gone now. No row: there was none
DELETE FROM semel.letter WHERE id = $1::bytea RETURNING id
