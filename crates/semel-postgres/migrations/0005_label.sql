-- What an incarnation of a key is about, for people: written with the grant that begins it, read by look alone, decided by never.
-- A table of its own, so that updates of a record stay as small as they were and in place (HOT). A missing row is legal: a gate of
-- the earlier schema writes none, and what it forgets, a sweep removes; so gates may go on while this step is migrated.
CREATE TABLE IF NOT EXISTS semel.label (
  key   bytea  NOT NULL,
  born  bigint NOT NULL,              -- the incarnation the label belongs to
  label bytea  NOT NULL,              -- at most 1024 bytes, never empty
  PRIMARY KEY (key, born)
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_cost_delay=0);

-- Whoever migrates, it belongs to the owner of the records: the gate's own user.
DO $m$
DECLARE
  owner name := (SELECT t.tableowner FROM pg_tables t WHERE t.schemaname = 'semel' AND t.tablename = 'rec');
BEGIN
  IF owner <> current_user THEN
    EXECUTE format('ALTER TABLE semel.label OWNER TO %I', owner);
  END IF;
END $m$;
