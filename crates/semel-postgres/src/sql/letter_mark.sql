-- $1 id  $2 true closes, false notes a redrive.  One row: done. No row: no such open letter
UPDATE semel.letter SET
  redriven   = redriven OR NOT $2::boolean,
  delivery   = CASE WHEN $2::boolean THEN '' ELSE delivery END,
  expires_at = CASE WHEN $2::boolean THEN clock_timestamp() + retention_us * interval '1 microsecond' END
WHERE id = $1::bytea AND expires_at IS NULL
RETURNING id
