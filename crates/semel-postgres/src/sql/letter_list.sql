-- $1 created_at and $2 id of the last one seen (start: '-infinity', '')  $3 limit.  Open letters
SELECT id, key, route, reason, fence, redriven, alarmed, octet_length(delivery) AS bytes, created_at FROM semel.letter
 WHERE expires_at IS NULL AND (created_at, id) > ($1::timestamptz, $2::bytea) ORDER BY created_at, id LIMIT $3::bigint
