-- Every change of every record, written down as it commits, in the race's own database.
CREATE SCHEMA race;
CREATE TABLE race.change (
  id   bigserial   PRIMARY KEY,          -- drawn while the row is locked: per key, the order of commits
  at   timestamptz NOT NULL,             -- just before the commit
  aged boolean     NOT NULL,             -- not a change by the store: the test made an expired record older
  old  semel.rec,
  new  semel.rec
);
-- Effects of handlers, each in the transaction that completes its record.
CREATE TABLE race.effect (key bytea NOT NULL, born bigint NOT NULL, fence bigint NOT NULL, nonce text NOT NULL);

CREATE FUNCTION race.note() RETURNS trigger LANGUAGE plpgsql AS $f$
BEGIN
  INSERT INTO race.change (at, aged, old, new)
  VALUES (clock_timestamp(), COALESCE(current_setting('race.ageing', true), '') = 'on', OLD, NEW);
  RETURN NULL;
END $f$;

CREATE CONSTRAINT TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON semel.rec
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION race.note();
