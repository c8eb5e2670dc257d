-- $1 id  $2 how many
SELECT t.key FROM semel.transport t WHERE t.id = $1::bytea AND t.expires_at > clock_timestamp() ORDER BY t.key LIMIT $2::bigint
