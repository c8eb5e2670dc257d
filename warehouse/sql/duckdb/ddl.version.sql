-- landing gets a row for every delivery, repeats among them, and is never updated or deleted from.
-- landing_faults gets what could not land there. effects gets one row per event: the merge's.
CREATE TABLE IF NOT EXISTS landing (
  event_id VARCHAR NOT NULL,
  fingerprint VARCHAR NOT NULL,
  message_id VARCHAR NOT NULL,
  source VARCHAR NOT NULL,
  published_at TIMESTAMPTZ NOT NULL,
  received_at TIMESTAMPTZ NOT NULL,
  delivery_id VARCHAR NOT NULL,
  attempt BIGINT,
  version BIGINT NOT NULL,
  payload VARCHAR NOT NULL
);

CREATE TABLE IF NOT EXISTS landing_faults (
  event_id VARCHAR,
  fingerprint VARCHAR,
  message_id VARCHAR NOT NULL,
  source VARCHAR NOT NULL,
  published_at TIMESTAMPTZ NOT NULL,
  received_at TIMESTAMPTZ NOT NULL,
  delivery_id VARCHAR NOT NULL,
  attempt BIGINT,
  fault VARCHAR NOT NULL,
  detail VARCHAR NOT NULL,
  payload BLOB NOT NULL,
  answer_status INTEGER,
  answer BLOB
);

CREATE TABLE IF NOT EXISTS effects (
  event_id VARCHAR NOT NULL,
  fingerprint VARCHAR NOT NULL,
  message_id VARCHAR NOT NULL,
  source VARCHAR NOT NULL,
  published_at TIMESTAMPTZ NOT NULL,
  received_at TIMESTAMPTZ NOT NULL,
  delivery_id VARCHAR NOT NULL,
  attempt BIGINT,
  version BIGINT NOT NULL,
  payload VARCHAR NOT NULL,
  PRIMARY KEY (event_id)
);

-- The version in a payload of landing: 0 where it has none, or one that is not a whole number.
CREATE OR REPLACE MACRO landing_version(payload) AS COALESCE(TRY_CAST(NULLIF(regexp_extract(
  CASE WHEN json_valid(payload) THEN json_extract_string(payload, '/order/version') END, '^-?[0-9]{1,19}$'), '') AS BIGINT), 0);
