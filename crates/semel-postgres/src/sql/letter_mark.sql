-- $1 id  $2 mark: 1 redriven, 2 alarmed, 3 closed.  One row: done. No row: no such open letter
UPDATE semel.letter SET
  redriven   = redriven OR $2::smallint = 1,
  alarmed    = alarmed OR $2::smallint = 2,
  delivery   = CASE WHEN $2::smallint = 3 THEN '' ELSE delivery END,
  expires_at = CASE WHEN $2::smallint = 3 THEN clock_timestamp() + retention_us * interval '1 microsecond' END
WHERE id = $1::bytea AND expires_at IS NULL
RETURNING id
