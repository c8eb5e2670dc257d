-- The tables that deliveries land in, by docs/warehouse.md.
CREATE TABLE landing (
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
CREATE TABLE landing_faults (
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
