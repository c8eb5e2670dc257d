-- The same rows as semel.effects has when everything is merged, without a merge.
CREATE OR REPLACE VIEW semel.effects_view AS
SELECT event_id, fingerprint, message_id, source, published_at, received_at, delivery_id, attempt, version, payload
  FROM (SELECT event_id, fingerprint, message_id, source, published_at, received_at, delivery_id, attempt, semel.landing_version(payload) AS version, payload FROM semel.landing) AS delivery
 WHERE TRUE
QUALIFY row_number() OVER (PARTITION BY event_id ORDER BY version DESC, published_at, message_id, fingerprint, received_at, delivery_id) = 1;
