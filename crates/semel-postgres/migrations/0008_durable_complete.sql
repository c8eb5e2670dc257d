-- Whose transaction is completed hears that it succeeded, and nobody delivers it again. So its COMMIT waits for the disk, and for
-- the standbys that the server names, even in a session that gave that up (synchronous_commit = off, local or remote_write).
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
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
  UPDATE semel.rec t SET state = 2, result = semel.outcome($3, $5, convert_to(COALESCE($4, ''), 'UTF8')),
         lease_until = clock_timestamp(),
         expires_at = GREATEST(t.expires_at, clock_timestamp() + (t.expires_at - t.lease_until),
                               (SELECT n.expires_at FROM semel.renewal n WHERE n.key = t.key AND n.fence = t.fence))
   WHERE t.key = k;
END $f$;
