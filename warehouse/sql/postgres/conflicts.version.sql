-- Events whose deliveries differ in their input under the same version: somebody re-used an identity. One of the inputs
-- has taken effect, the others are only in landing.
SELECT event_id, version, count(DISTINCT fingerprint) AS inputs, count(*) AS deliveries,
       min(received_at) AS first_received_at, max(received_at) AS last_received_at
  FROM (SELECT event_id, fingerprint, message_id, source, published_at, received_at, delivery_id, attempt, landing_version(payload) AS version, payload FROM landing) AS delivery
 GROUP BY event_id, version
HAVING min(fingerprint) <> max(fingerprint)
 ORDER BY event_id, version;
