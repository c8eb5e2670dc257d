-- landing gets a row for every delivery, repeats among them, and is never updated or deleted from.
-- landing_faults gets what could not land there. effects gets one row per event: the merge's.
CREATE TABLE IF NOT EXISTS landing (
  event_id text COLLATE "C" NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  source text COLLATE "C" NOT NULL,
  published_at timestamptz NOT NULL,
  received_at timestamptz NOT NULL,
  delivery_id text COLLATE "C" NOT NULL,
  attempt bigint,
  version bigint NOT NULL,
  payload text NOT NULL
);
CREATE INDEX IF NOT EXISTS landing_received_at ON landing USING brin (received_at);

CREATE TABLE IF NOT EXISTS landing_faults (
  event_id text COLLATE "C",
  fingerprint text COLLATE "C",
  message_id text COLLATE "C" NOT NULL,
  source text COLLATE "C" NOT NULL,
  published_at timestamptz NOT NULL,
  received_at timestamptz NOT NULL,
  delivery_id text COLLATE "C" NOT NULL,
  attempt bigint,
  fault text COLLATE "C" NOT NULL,
  detail text NOT NULL,
  payload bytea NOT NULL,
  answer_status integer,
  answer bytea
);

CREATE TABLE IF NOT EXISTS effects (
  event_id text COLLATE "C" NOT NULL,
  fingerprint text COLLATE "C" NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  source text COLLATE "C" NOT NULL,
  published_at timestamptz NOT NULL,
  received_at timestamptz NOT NULL,
  delivery_id text COLLATE "C" NOT NULL,
  attempt bigint,
  version bigint NOT NULL,
  payload text NOT NULL,
  PRIMARY KEY (event_id)
);

-- The version in a payload of landing: 0 where it has none, or one that is not a whole number.
CREATE OR REPLACE FUNCTION landing_version(payload text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $f$
BEGIN
  RETURN COALESCE(substring(payload::json #>> '{order,version}' FROM '^-?[0-9]{1,19}$')::bigint, 0);
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
  RETURN 0;
END $f$;
