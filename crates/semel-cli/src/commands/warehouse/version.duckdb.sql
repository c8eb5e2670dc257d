-- The version in a payload of {landing}: 0 where it has none, or one that is not a whole number.
CREATE OR REPLACE MACRO {landing}_version(payload) AS COALESCE(TRY_CAST(NULLIF(regexp_extract(
  CASE WHEN json_valid(payload) THEN json_extract_string(payload, '{path}') END, '^-?[0-9]{1,19}$'), '') AS BIGINT), 0);

