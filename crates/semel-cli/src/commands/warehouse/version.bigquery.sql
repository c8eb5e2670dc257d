-- The version in a payload of {landing}: 0 where it has none, or one that is not a whole number.
CREATE OR REPLACE FUNCTION {landing}_version(payload STRING) AS (COALESCE(SAFE_CAST(REGEXP_EXTRACT(
  JSON_VALUE(SAFE.PARSE_JSON(payload, wide_number_mode => 'round'), '{path}'), r'^-?[0-9]{1,19}$') AS INT64), 0));

