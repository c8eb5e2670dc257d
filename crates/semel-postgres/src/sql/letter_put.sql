-- $1 id  $2 key or null  $3 route  $4 reason  $5 fence  $6 retention in µs  $7 redriven  $8 alarmed  $9 delivery
-- One row: it was written; true: kept from now on, false: its fence rose. No row: nothing to write, letter_look says why
INSERT INTO semel.letter AS t (id, key, route, reason, fence, retention_us, redriven, alarmed, delivery, created_at)
SELECT $1::bytea, $2::bytea, $3::text, $4::smallint, $5::bigint, $6::bigint, $7::boolean, $8::boolean, $9::bytea, clock_timestamp()
ON CONFLICT (id) DO UPDATE SET
  key          = CASE WHEN t.expires_at IS NULL THEN t.key          ELSE EXCLUDED.key          END,
  route        = CASE WHEN t.expires_at IS NULL THEN t.route        ELSE EXCLUDED.route        END,
  reason       = CASE WHEN t.expires_at IS NULL THEN t.reason       ELSE EXCLUDED.reason       END,
  fence        = EXCLUDED.fence,
  retention_us = CASE WHEN t.expires_at IS NULL THEN t.retention_us ELSE EXCLUDED.retention_us END,
  redriven     = CASE WHEN t.expires_at IS NULL THEN t.redriven     ELSE EXCLUDED.redriven     END,
  alarmed      = CASE WHEN t.expires_at IS NULL THEN t.alarmed      ELSE EXCLUDED.alarmed      END,
  delivery     = CASE WHEN t.expires_at IS NULL THEN t.delivery     ELSE EXCLUDED.delivery     END,
  created_at   = CASE WHEN t.expires_at IS NULL THEN t.created_at   ELSE EXCLUDED.created_at   END,
  expires_at   = NULL
WHERE EXCLUDED.fence > t.fence OR t.expires_at <= clock_timestamp()
RETURNING t.created_at >= statement_timestamp() AS applied
