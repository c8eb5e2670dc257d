-- state: 1 running, 2 succeeded, 3 failed, 4 waiting, 5 parked
CREATE TABLE IF NOT EXISTS semel.rec (
  key         bytea       NOT NULL PRIMARY KEY,   -- 32 bytes
  fp          bytea       NOT NULL,   -- 32-byte fingerprint of the delivery
  state       smallint    NOT NULL,
  attempts    integer     NOT NULL,
  born        bigint      NOT NULL,   -- fence of the grant that found the key absent or expired: names the incarnation
  fence       bigint      NOT NULL,   -- max(previous + 1, store clock in µs): rises per key, also across sweep and forget
  owner       uuid        NOT NULL,   -- random per claim
  lease_until timestamptz NOT NULL,   -- running: end of lease; waiting: not before; else: when it got there
  expires_at  timestamptz NOT NULL,   -- end of retention; expires_at - lease_until >= retention in every state; ignored while parked
  result      bytea
) WITH (fillfactor=30, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_cost_delay=0);
-- fillfactor 30: a page that one group claims and one group completes with outcomes of up to 200 bytes still updates in place (HOT)
-- no CHECK: PostgreSQL reads each one anew for every statement, 12 of 180 µs; what is read back is checked by whoever reads it
-- deliberately NO index on expires_at, state or lease_until: it would end HOT updates

CREATE TABLE IF NOT EXISTS semel.step (
  key    bytea    NOT NULL,
  born   bigint   NOT NULL,           -- the incarnation the step belongs to
  name   text     NOT NULL,
  fence  bigint   NOT NULL,           -- the run that started it last
  state  smallint NOT NULL CHECK (state IN (1,2)),   -- 1 started, 2 done
  result bytea,
  PRIMARY KEY (key, born, name)
) WITH (fillfactor=80);

-- reason: 1 parked, 2 failed, 3 mismatched, 4 invalid
CREATE TABLE IF NOT EXISTS semel.letter (
  id         bytea       NOT NULL PRIMARY KEY,
  key        bytea,                   -- null when the delivery has no key
  reason     smallint    NOT NULL CHECK (reason BETWEEN 1 AND 4),
  delivery   bytea       NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS letter_created ON semel.letter (created_at, id);

-- Stored outcome (result of succeeded and failed), version 1:
--   byte 0x01 · 4-byte big-endian length n · n bytes of JSON {"status":200,"headers":{"content-type":"application/json"}} · body bytes
-- A header value is a string, or an array of strings for a repeated header. Names are kept in lower case.
CREATE OR REPLACE FUNCTION semel.outcome(status int, headers jsonb, body bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $f$
  SELECT '\x01'::bytea || int4send(octet_length(h)) || h || COALESCE($3, ''::bytea)
    FROM (SELECT convert_to(json_build_object('status', $1, 'headers', COALESCE(jsonb_object_agg(lower(e.key), e.value), '{}'))::text,
                            'UTF8') AS h
            FROM jsonb_each(COALESCE($2, '{}'::jsonb)) e) x
$f$;

-- Completion in the handler's own transaction. key = Semel-Key ('v1_' + 64 hex), fence = Semel-Fence.
--   SM001 stale: this run is no longer the owner · SM002 already completed · SM003 bad argument
CREATE OR REPLACE FUNCTION semel.complete(key text, fence bigint, status int, body text,
                                          headers jsonb DEFAULT '{"content-type":"application/json"}')
RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
#variable_conflict use_column
DECLARE
  k bytea;
  r record;
BEGIN
  IF $1 IS NULL OR $1 !~ '^v1_[0-9a-f]{64}$' THEN
    RAISE EXCEPTION 'semel.complete: the key must be v1_ and 64 hex digits' USING ERRCODE = 'SM003';
  ELSIF $2 IS NULL OR $3 IS NULL OR $3 NOT BETWEEN 100 AND 599 THEN
    RAISE EXCEPTION 'semel.complete: fence and a status from 100 to 599 are needed' USING ERRCODE = 'SM003';
  ELSIF jsonb_typeof(COALESCE($5, '{}'::jsonb)) <> 'object' THEN
    RAISE EXCEPTION 'semel.complete: headers must be a JSON object' USING ERRCODE = 'SM003';
  ELSIF jsonb_path_exists(COALESCE($5, '{}'::jsonb), 'strict $.* ? (@.type() != "string" && @.type() != "array")')
     OR jsonb_path_exists(COALESCE($5, '{}'::jsonb), 'strict $.* ? (@.type() == "array")[*] ? (@.type() != "string")') THEN
    RAISE EXCEPTION 'semel.complete: a header is a string or an array of strings' USING ERRCODE = 'SM003';
  ELSIF octet_length($4) > 16000000 THEN
    RAISE EXCEPTION 'semel.complete: the body has more than 16000000 bytes' USING ERRCODE = 'SM003';
  END IF;
  k := decode(substr($1, 4), 'hex');
  SELECT t.state, t.fence INTO r FROM semel.rec t WHERE t.key = k FOR UPDATE;
  IF NOT FOUND OR r.fence <> $2 THEN
    RAISE EXCEPTION 'semel.complete: stale, fence % is not the current one', $2 USING ERRCODE = 'SM001';
  ELSIF r.state = 2 THEN
    RAISE EXCEPTION 'semel.complete: already completed under fence %', $2 USING ERRCODE = 'SM002';
  ELSIF r.state NOT IN (1, 5) THEN
    RAISE EXCEPTION 'semel.complete: stale, the record is no longer running' USING ERRCODE = 'SM001';
  END IF;
  UPDATE semel.rec t SET state = 2, result = semel.outcome($3, $5, convert_to(COALESCE($4, ''), 'UTF8')),
         lease_until = clock_timestamp(),
         expires_at = GREATEST(t.expires_at, clock_timestamp() + (t.expires_at - t.lease_until))
   WHERE t.key = k;
END $f$;

-- True exactly once per name, bound to the caller's transaction: a concurrent caller waits for the first one's
-- transaction and gets true if that rolled back. Its keys have a tag of their own: they never meet a gate's record.
CREATE OR REPLACE FUNCTION semel.once(name text, retention interval DEFAULT '7 days')
RETURNS boolean LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
#variable_conflict use_column
DECLARE
  b bytea := convert_to($1, 'UTF8');
  k bytea;
  f bigint;
BEGIN
  IF $1 IS NULL OR $2 IS NULL OR $2 <= interval '0' THEN
    RAISE EXCEPTION 'semel.once: a name and a positive retention are needed' USING ERRCODE = 'SM003';
  END IF;
  k := sha256(convert_to('semel-once-v1', 'UTF8') || int8send(octet_length(b)) || b);
  IF EXISTS (SELECT 1 FROM semel.rec t WHERE t.key = k AND t.expires_at > clock_timestamp()) THEN
    RETURN false;
  END IF;
  f := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
  INSERT INTO semel.rec AS t (key, fp, state, attempts, born, fence, owner, lease_until, expires_at)
  VALUES (k, k, 2, 1, f, f, gen_random_uuid(), clock_timestamp(), clock_timestamp() + $2)
  ON CONFLICT (key) DO UPDATE SET born = GREATEST(t.fence + 1, f), fence = GREATEST(t.fence + 1, f), owner = EXCLUDED.owner,
         lease_until = clock_timestamp(), expires_at = clock_timestamp() + $2
   WHERE t.expires_at <= clock_timestamp();
  RETURN FOUND;
END $f$;

REVOKE ALL ON FUNCTION semel.outcome(int, jsonb, bytea), semel.complete(text, bigint, int, text, jsonb), semel.once(text, interval) FROM PUBLIC;

-- A role is made for the whole server, so it may be there, may be made at this moment by the migration of another database,
-- and on many managed servers may not be made at all: then handlers need these two grants from whoever makes it.
DO $d$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'semel_handler') THEN
    BEGIN
      CREATE ROLE semel_handler NOLOGIN;
    EXCEPTION
      WHEN duplicate_object OR unique_violation THEN NULL;
      WHEN insufficient_privilege THEN
        RAISE NOTICE 'semel: no right to create the role semel_handler; handlers cannot call semel.complete and semel.once until it is made';
    END;
  END IF;
  IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'semel_handler') THEN
    GRANT USAGE ON SCHEMA semel TO semel_handler;
    GRANT EXECUTE ON FUNCTION semel.complete(text, bigint, int, text, jsonb), semel.once(text, interval) TO semel_handler;
  END IF;
END $d$;
