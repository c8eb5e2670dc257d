-- $1 id.  Whether it is open; no row: there is none
SELECT expires_at IS NULL AS open FROM semel.letter WHERE id = $1::bytea
