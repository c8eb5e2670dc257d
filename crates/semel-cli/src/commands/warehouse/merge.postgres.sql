-- Merges what was received since :'since' (a variable of psql). However the deliveries are divided, ordered or
-- repeated, all merges together end in the same table. Two merges at once are safe: the key makes one wait, and sorted
-- rows never deadlock. `since` is where the last merge began, less an overlap: a row is committed later than it was
-- received.
INSERT INTO {effects} AS t ({columns})
SELECT DISTINCT ON (event_id) {columns}
  FROM {source}
 WHERE received_at >= :'since'
 ORDER BY event_id, {order}
ON CONFLICT (event_id) DO UPDATE SET
  {assignments}
 WHERE {precedes};
