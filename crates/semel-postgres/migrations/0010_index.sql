-- Keys by the transport ids of their deliveries, where a gate is told to keep that: best effort, expires, no claim reads it. The id is a
-- SHA-256: names of tasks and messages are not kept here. Two gates may index one key at once, so there is no order of rows to keep.
CREATE TABLE IF NOT EXISTS semel.transport (
  id         bytea       NOT NULL,
  key        bytea       NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (id, key)
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_cost_delay=0);
CREATE INDEX IF NOT EXISTS transport_key ON semel.transport (key);      -- for forget

-- Whoever migrates, it belongs to the owner of the records: the gate's own user.
DO $m$
DECLARE
  owner name := (SELECT t.tableowner FROM pg_tables t WHERE t.schemaname = 'semel' AND t.tablename = 'rec');
BEGIN
  IF owner <> current_user THEN
    EXECUTE format('ALTER TABLE semel.transport OWNER TO %I', owner);
  END IF;
END $m$;
