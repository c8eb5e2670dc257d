-- Every change of every record, written down as it commits, in the race's own database.
CREATE SCHEMA race;
CREATE TABLE race.change (
  id   bigserial   PRIMARY KEY,          -- drawn while the record is locked: per key, the order of commits
  at   timestamptz NOT NULL,             -- just before the commit
  aged boolean     NOT NULL,             -- not a change by the store: the test made an expired record older
  old  semel.rec,
  new  semel.rec,
  renewal semel.renewal,                 -- the record stays as it is, and its lease ends then
  gone boolean                           -- the renewal was removed instead
);
-- Effects of handlers, each in the transaction that completes its record.
CREATE TABLE race.effect (key bytea NOT NULL, born bigint NOT NULL, fence bigint NOT NULL, nonce text NOT NULL);

CREATE FUNCTION race.note() RETURNS trigger LANGUAGE plpgsql AS $f$
BEGIN
  INSERT INTO race.change (at, aged, old, new)
  VALUES (clock_timestamp(), COALESCE(current_setting('race.ageing', true), '') = 'on', OLD, NEW);
  RETURN NULL;
END $f$;

CREATE FUNCTION race.note_renewal() RETURNS trigger LANGUAGE plpgsql AS $f$
BEGIN
  INSERT INTO race.change (at, aged, renewal, gone)
  VALUES (clock_timestamp(), COALESCE(current_setting('race.ageing', true), '') = 'on', COALESCE(NEW, OLD), NEW IS NULL);
  RETURN NULL;
END $f$;

CREATE CONSTRAINT TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON semel.rec
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION race.note();
CREATE CONSTRAINT TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON semel.renewal
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION race.note_renewal();

-- Makes records older that have been expired for a while, so that the sweeper meets them within the test: its own grace is
-- longer than a race.
CREATE FUNCTION race.age(grace interval) RETURNS void LANGUAGE plpgsql AS $f$
DECLARE
  r semel.rec;
  n semel.renewal;
BEGIN
  FOR r IN SELECT * FROM semel.rec WHERE state <> 5 AND expires_at < clock_timestamp() - grace
              AND lease_until < clock_timestamp() FOR UPDATE SKIP LOCKED LOOP
    n := semel.renewed(r.key, r.fence);
    CONTINUE WHEN n.expires_at >= clock_timestamp() - grace OR n.lease_until >= clock_timestamp();
    UPDATE semel.renewal x SET lease_until = x.lease_until - interval '1 h', expires_at = x.expires_at - interval '1 h'
     WHERE x.key = r.key AND x.fence = r.fence;
    UPDATE semel.rec x SET lease_until = x.lease_until - interval '1 h', expires_at = x.expires_at - interval '1 h'
     WHERE x.key = r.key;
  END LOOP;
END $f$;
