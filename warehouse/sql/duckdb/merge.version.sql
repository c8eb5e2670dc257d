-- Merges what was received since `since`, a variable (SET VARIABLE since = …). However the deliveries are divided,
-- ordered or repeated, all merges together end in the same table. Let no two merges run at once. `since` is where the
-- last merge began, less an overlap: a row is committed later than it was received.
MERGE INTO effects AS t
USING (
  SELECT event_id, fingerprint, message_id, source, published_at, received_at, delivery_id, attempt, version, payload
    FROM (SELECT event_id, fingerprint, message_id, source, published_at, received_at, delivery_id, attempt, landing_version(payload) AS version, payload FROM landing) AS delivery
   WHERE received_at >= coalesce(getvariable('since'), error('first: SET VARIABLE since = …'))
  QUALIFY row_number() OVER (PARTITION BY event_id ORDER BY version DESC, published_at, message_id, fingerprint, received_at, delivery_id) = 1
) AS s
ON t.event_id = s.event_id
WHEN MATCHED AND (t.version, s.published_at, s.message_id, s.fingerprint, s.received_at, s.delivery_id)
     < (s.version, t.published_at, t.message_id, t.fingerprint, t.received_at, t.delivery_id) THEN UPDATE SET
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
