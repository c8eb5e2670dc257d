-- $1 id  $2 key or null  $3 reason  $4 delivery.  Once per id. One row: new. No row: it was there
INSERT INTO semel.letter (id, key, reason, delivery) VALUES ($1::bytea, $2::bytea, $3::smallint, $4::bytea)
ON CONFLICT (id) DO NOTHING
RETURNING created_at
