-- Merges what was received since :'since' (a variable of psql). However the deliveries are divided, ordered or
-- repeated, all merges together end in the same table. Two merges at once are safe: the key makes one wait, and sorted
-- rows never deadlock. `since` is where the last merge began, less an overlap: a row is committed later than it was
-- received.
INSERT INTO effects AS t (event_id, fingerprint, message_id, source, published_at, received_at, delivery_id, attempt, version, payload)
SELECT DISTINCT ON (event_id) event_id, fingerprint, message_id, source, published_at, received_at, delivery_id, attempt, version, payload
  FROM (SELECT event_id, fingerprint, message_id, source, published_at, received_at, delivery_id, attempt, landing_version(payload) AS version, payload FROM landing) AS delivery
 WHERE received_at >= :'since'
 ORDER BY event_id, version DESC, published_at, message_id, fingerprint, received_at, delivery_id
ON CONFLICT (event_id) DO UPDATE SET
  fingerprint = excluded.fingerprint,
  message_id = excluded.message_id,
  source = excluded.source,
  published_at = excluded.published_at,
  received_at = excluded.received_at,
  delivery_id = excluded.delivery_id,
  attempt = excluded.attempt,
  version = excluded.version,
  payload = excluded.payload
 WHERE (t.version, excluded.published_at, excluded.message_id, excluded.fingerprint, excluded.received_at, excluded.delivery_id)
     < (excluded.version, t.published_at, t.message_id, t.fingerprint, t.received_at, t.delivery_id);
