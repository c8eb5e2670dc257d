-- The version in a payload of {landing}: 0 where it has none, or one that is not a whole number.
CREATE OR REPLACE FUNCTION {landing}_version(payload text) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE AS $f$
BEGIN
  RETURN COALESCE(substring(payload::json #>> '{path}' FROM '^-?[0-9]{1,19}$')::bigint, 0);
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
  RETURN 0;
END $f$;

