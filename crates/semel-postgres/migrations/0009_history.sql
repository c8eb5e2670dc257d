-- Attempts of an incarnation that a later grant or an act has superseded, for people: written by the statement that supersedes,
-- read by look alone, decided by never. A table of its own for the reason the label has one: updates of a record stay as small as they
-- were and in place (HOT), and a first success, a renewal and a completion write nothing here. A gate of the earlier schema writes no
-- rows, which is legal, and leaves what it forgets to a sweep; so gates may go on while this step is migrated.
CREATE TABLE IF NOT EXISTS semel.history (
  key      bytea       NOT NULL,
  born     bigint      NOT NULL,      -- the incarnation the attempt belongs to
  fence    bigint      NOT NULL,      -- of the attempt
  at       timestamptz NOT NULL,      -- when it was superseded
  state    smallint    NOT NULL,      -- how the record stood
  in_doubt boolean     NOT NULL,
  until    timestamptz NOT NULL,      -- the end of its lease, or when it got there
  who      bytea       NOT NULL,      -- at most 128 bytes
  result   bytea,                     -- its first 96 bytes
  PRIMARY KEY (key, born, fence, at)
) WITH (autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_cost_delay=0);

-- Whoever migrates, it belongs to the owner of the records: the gate's own user.
DO $m$
DECLARE
  owner name := (SELECT t.tableowner FROM pg_tables t WHERE t.schemaname = 'semel' AND t.tablename = 'rec');
BEGIN
  IF owner <> current_user THEN
    EXECUTE format('ALTER TABLE semel.history OWNER TO %I', owner);
  END IF;
END $m$;
