-- Where a run's lease ends when it was renewed. A renewal writes here and only locks the record: a handler's transaction in
-- REPEATABLE READ or SERIALIZABLE that calls semel.complete would otherwise meet a record that was updated since its snapshot, and
-- fail with 40001 however often it is tried. A row counts for the record of the same key and fence, and for no other:
--   the end of retention is the later of both expires_at; the end of the lease, while running, the later of both lease_until.
CREATE TABLE IF NOT EXISTS semel.renewal (
  key         bytea       NOT NULL PRIMARY KEY,
  fence       bigint      NOT NULL,   -- the run that renewed; any other record of this key does without this row
  lease_until timestamptz NOT NULL,
  expires_at  timestamptz NOT NULL
) WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_cost_delay=0);
-- fillfactor 50: the next renewal updates in place (HOT); no index on times, for the same reason

-- The renewal of a run, as it is now: a volatile function looks with a snapshot of its own, not with the one of the statement that
-- calls it, which may be older than the lock it holds. Whoever takes a lease away asks this, after the record is locked.
CREATE OR REPLACE FUNCTION semel.renewed(key bytea, fence bigint) RETURNS semel.renewal
LANGUAGE plpgsql VOLATILE AS $f$
#variable_conflict use_column
DECLARE
  latest semel.renewal;
BEGIN
  -- Else this would look with the snapshot of the transaction, and a live lease could be taken away.
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'semel: default_transaction_isolation of the gate''s user must be read committed' USING ERRCODE = 'SM003';
  END IF;
  SELECT n.* INTO latest FROM semel.renewal n WHERE n.key = $1 AND n.fence = $2;
  RETURN latest;
END $f$;

-- As before, and it lets retention end no earlier than the renewals promised.
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
  -- At REPEATABLE READ and SERIALIZABLE this fails with 40001 if the record was written since the snapshot: by a take-over, an
  -- operator or a lapse that parked it. A renewal does not write it.
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
         expires_at = GREATEST(t.expires_at, clock_timestamp() + (t.expires_at - t.lease_until),
                               (SELECT n.expires_at FROM semel.renewal n WHERE n.key = t.key AND n.fence = t.fence))
   WHERE t.key = k;
END $f$;

-- What a health check writes: one row, so that a server that is read-only, full or forbids it is noticed before a delivery is.
CREATE TABLE IF NOT EXISTS semel.ready (
  one  boolean     NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
  at   timestamptz NOT NULL,
  room text                           -- filled after a write found the disk full, to see whether there is room again
) WITH (fillfactor=10);

-- Whoever migrates, all of it belongs to the owner of the records: the gate's own user, as which semel.complete runs.
DO $m$
DECLARE
  owner name := (SELECT t.tableowner FROM pg_tables t WHERE t.schemaname = 'semel' AND t.tablename = 'rec');
BEGIN
  IF owner <> current_user THEN
    EXECUTE format('ALTER TABLE semel.renewal OWNER TO %I', owner);
    EXECUTE format('ALTER TABLE semel.ready OWNER TO %I', owner);
    EXECUTE format('ALTER FUNCTION semel.renewed(bytea, bigint) OWNER TO %I', owner);
  END IF;
END $m$;
