-- $1 id[]  $2 key  $3 keep.  The ids are distinct and sorted
INSERT INTO semel.transport AS t (id, key, expires_at)
SELECT q.id, $2::bytea, clock_timestamp() + $3::interval FROM unnest($1::bytea[]) AS q(id)
ON CONFLICT (id, key) DO UPDATE SET expires_at = GREATEST(t.expires_at, excluded.expires_at)
