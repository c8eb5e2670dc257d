-- Merges what was received since `since`, a parameter of the query. However the deliveries are divided,
-- ordered or repeated, all merges together end in the same table. Let no two merges run at once. `since` is where the
-- last merge began, less an overlap: a row is committed later than it was received.
MERGE INTO semel.effects AS t
USING (
  SELECT event_id, fingerprint, message_id, source, published_at, received_at, delivery_id, attempt, version, payload
    FROM (SELECT event_id, fingerprint, message_id, source, published_at, received_at, delivery_id, attempt, semel.landing_version(payload) AS version, payload FROM semel.landing) AS delivery
   WHERE received_at >= @since
  QUALIFY row_number() OVER (PARTITION BY event_id ORDER BY version DESC, published_at, message_id, fingerprint, received_at, delivery_id) = 1
) AS s
ON t.event_id = s.event_id
WHEN MATCHED AND (s.version > t.version OR (s.version = t.version AND (
  s.published_at < t.published_at OR (s.published_at = t.published_at AND (
  s.message_id < t.message_id OR (s.message_id = t.message_id AND (
  s.fingerprint < t.fingerprint OR (s.fingerprint = t.fingerprint AND (
  s.received_at < t.received_at OR (s.received_at = t.received_at AND (
  s.delivery_id < t.delivery_id))))))))))) THEN UPDATE SET
  fingerprint = s.fingerprint,
  message_id = s.message_id,
  source = s.source,
  published_at = s.published_at,
  received_at = s.received_at,
  delivery_id = s.delivery_id,
  attempt = s.attempt,
  version = s.version,
  payload = s.payload
WHEN NOT MATCHED THEN INSERT (event_id, fingerprint, message_id, source, published_at, received_at, delivery_id, attempt, version, payload)
  VALUES (s.event_id, s.fingerprint, s.message_id, s.source, s.published_at, s.received_at, s.delivery_id, s.attempt, s.version, s.payload);
