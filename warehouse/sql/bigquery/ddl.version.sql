-- semel.landing gets a row for every delivery, repeats among them, and is never updated or deleted from.
-- semel.landing_faults gets what could not land there. semel.effects gets one row per event: the merge's.
CREATE SCHEMA IF NOT EXISTS semel;

CREATE TABLE IF NOT EXISTS semel.landing (
  event_id STRING NOT NULL,
  fingerprint STRING NOT NULL,
  message_id STRING NOT NULL,
  source STRING NOT NULL,
  published_at TIMESTAMP NOT NULL,
  received_at TIMESTAMP NOT NULL,
  delivery_id STRING NOT NULL,
  attempt INT64,
  version INT64 NOT NULL,
  payload STRING NOT NULL
)
PARTITION BY DATE(received_at);

CREATE TABLE IF NOT EXISTS semel.landing_faults (
  event_id STRING,
  fingerprint STRING,
  message_id STRING NOT NULL,
  source STRING NOT NULL,
  published_at TIMESTAMP NOT NULL,
  received_at TIMESTAMP NOT NULL,
  delivery_id STRING NOT NULL,
  attempt INT64,
  fault STRING NOT NULL,
  detail STRING NOT NULL,
  payload BYTES NOT NULL,
  answer_status INT64,
  answer BYTES
)
PARTITION BY DATE(received_at);

CREATE TABLE IF NOT EXISTS semel.effects (
  event_id STRING NOT NULL,
  fingerprint STRING NOT NULL,
  message_id STRING NOT NULL,
  source STRING NOT NULL,
  published_at TIMESTAMP NOT NULL,
  received_at TIMESTAMP NOT NULL,
  delivery_id STRING NOT NULL,
  attempt INT64,
  version INT64 NOT NULL,
  payload STRING NOT NULL
)
PARTITION BY DATE(published_at) CLUSTER BY event_id;

-- The version in a payload of semel.landing: 0 where it has none, or one that is not a whole number.
CREATE OR REPLACE FUNCTION semel.landing_version(payload STRING) AS (COALESCE(SAFE_CAST(REGEXP_EXTRACT(
  JSON_VALUE(SAFE.PARSE_JSON(payload, wide_number_mode => 'round'), '$.order.version'), r'^-?[0-9]{1,19}$') AS INT64), 0));
