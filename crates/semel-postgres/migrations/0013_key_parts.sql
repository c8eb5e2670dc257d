-- semel.key: null, [] and {} are missing parts unless the pointer ends in ?null; a number that a double rounds is refused;
-- a segment that ends in ~json leads into a string that holds JSON; form:NAME is a field of a form body.
--   SELECT semel.key('shop', 'orders', ARRAY['/order_id?null'], payload);
--   SELECT semel.key('shop', 'orders', ARRAY['/Message~json/order_id'], payload);
--   SELECT semel.key('shop', 'orders', ARRAY['form:MessageSid'], payload);

-- === numbers ===

-- The digits of a literal without zeros around them, and the power of ten of the last one: the same for all spellings.
CREATE OR REPLACE FUNCTION semel.key_decimal(literal text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $f$
DECLARE
  written text[] := regexp_match(literal, '^(-?)([0-9]+)\.?([0-9]*)(?:[eE]([-+]?)0*([0-9]*))?$');
  padded text := written[2] || written[3];
  exponent text := COALESCE(NULLIF(written[5], ''), '0');
BEGIN
  IF trim('0' FROM padded) = '' THEN
    RETURN '0';
  ELSIF length(exponent) > 18 THEN
    RETURN literal;
  END IF;
  RETURN written[1] || trim('0' FROM padded) || 'e' || (COALESCE(written[4], '') || exponent)::bigint
         - length(written[3]) + length(padded) - length(rtrim(padded, '0'));
END $f$;

-- An integer literal as its exact digits, any other as the nearest double, if that is the same decimal.
CREATE OR REPLACE FUNCTION semel.key_number(literal text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $f$
DECLARE
  value float8;
  written text[];
  place numeric;
  shortest text;
BEGIN
  IF literal ~ '^-?[0-9]+$' THEN
    IF length(literal) > 20 OR literal::numeric NOT BETWEEN -9223372036854775808 AND 18446744073709551615 THEN
      PERFORM semel.key_refuse('wide_integer', format('%s is outside -2^63 to 2^64-1', left(literal, 40)));
    END IF;
    RETURN literal::numeric::text;
  END IF;
  BEGIN
    value := literal::float8;
  EXCEPTION WHEN numeric_value_out_of_range THEN
    -- Too large, or too small? Tell by the place of the first digit that is not 0.
    written := regexp_match(literal, '^-?([0-9]+)\.?(0*)[0-9]*[eE]?(.*)$');
    place := CASE written[1] WHEN '0' THEN -length(written[2]) ELSE length(written[1]) END
             + COALESCE(NULLIF(written[3], '')::numeric, 0);
    IF place > 0 THEN
      PERFORM semel.key_refuse('number_overflow', format('%s is beyond every double', left(literal, 40)));
    END IF;
    value := 0;
  END;
  shortest := CASE WHEN value = 0 THEN '0' WHEN value < 0 THEN '-' || semel.key_double(-value) ELSE semel.key_double(value) END;
  IF semel.key_decimal(shortest) <> semel.key_decimal(literal) THEN
    PERFORM semel.key_refuse('inexact_number', format('%s is %s as a double: send it as a string', left(literal, 40), shortest));
  END IF;
  RETURN shortest;
END $f$;

-- === pointers ===

-- What an RFC 6901 pointer leads to; NULL when there is nothing. A segment with ~json continues in the JSON of a string.
CREATE OR REPLACE FUNCTION semel.key_at(document json, pointer text) RETURNS json
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $f$
DECLARE
  node json := document;
  segment text;
  name text;
BEGIN
  FOREACH segment IN ARRAY regexp_split_to_array(substr(pointer, 2), '/') LOOP
    name := regexp_replace(segment, '~json$', '');
    name := replace(replace(replace(name, '~1', '/'), '~0', '~'), '\', '\b');
    IF json_typeof(node) = 'object' THEN
      node := node -> name;
    ELSIF json_typeof(node) = 'array' AND name ~ '^(0|[1-9][0-9]{0,8})$' THEN
      node := node -> name::int;
    ELSE
      RETURN NULL;
    END IF;
    IF segment LIKE '%~json' THEN
      -- U+0000 is nowhere in JSON.
      IF json_typeof(node) IS DISTINCT FROM 'string' OR strpos(node #>> '{}', '\0') > 0 THEN
        RETURN NULL;
      END IF;
      node := semel.key_document(replace(node #>> '{}', '\b', '\'));
    END IF;
  END LOOP;
  RETURN node;
END $f$;

-- === forms ===

-- The bytes that a name or value of a form means; NULL when an escape is broken.
CREATE OR REPLACE FUNCTION semel.key_form_bytes(written text) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $f$
  SELECT CASE WHEN written !~ '%(?![0-9A-Fa-f]{2})' THEN
    (SELECT COALESCE(string_agg(CASE WHEN m.run[1] LIKE '\%%' THEN decode(substr(m.run[1], 2), 'hex')
                                     ELSE convert_to(m.run[1], 'UTF8') END, ''::bytea ORDER BY m.n), ''::bytea)
       FROM regexp_matches(replace(written, '+', ' '), '%..|[^%]+', 'g') WITH ORDINALITY AS m(run, n)) END
$f$;

-- The value of a field; NULL when there is none, or none that is UTF-8.
CREATE OR REPLACE FUNCTION semel.key_form(payload text, field text) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  found text[];
BEGIN
  SELECT array_agg(substr(p.pair, length(split_part(p.pair, '=', 1)) + 2)) INTO found
    FROM string_to_table(payload, '&') AS p(pair)
   WHERE semel.key_form_bytes(split_part(p.pair, '=', 1)) = convert_to(field, 'UTF8');
  IF cardinality(found) > 1 THEN
    PERFORM semel.key_refuse('duplicate_member', format('the form has the field %s twice', field));
  END IF;
  -- U+0000 is UTF-8, though not for this database.
  PERFORM convert_from(semel.key_form_bytes(replace(found[1], '%00', '')), 'UTF8');
  RETURN semel.key_form_bytes(found[1]);
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
  RETURN NULL;
END $f$;

-- === parts ===

-- One part of the rule as a field.
CREATE OR REPLACE FUNCTION semel.key_part(part text, payload text, document json, named jsonb) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $f$
DECLARE
  node json;
  kind text := 's';
  content bytea;
BEGIN
  IF part = 'body' THEN
    kind := 'h';
    content := sha256(convert_to(payload, 'UTF8'));
  ELSIF part ~ '^(/([^~/]|~[01])*(~json)?)+(\?null)?$' THEN
    node := semel.key_at(document, regexp_replace(part, '\?null$', ''));
    kind := CASE json_typeof(node) WHEN 'string' THEN 's' WHEN 'number' THEN 'd' WHEN 'boolean' THEN 'b'
                                   WHEN 'null' THEN 'z' WHEN 'array' THEN 'a' WHEN 'object' THEN 'o' END;
    content := CASE kind WHEN 's' THEN semel.key_bytes(node #>> '{}') ELSE convert_to(semel.key_text(node), 'UTF8') END;
    IF part !~ '\?null$' AND (kind, content) IN (('z', 'null'::bytea), ('a', '[]'::bytea), ('o', '{}'::bytea)) THEN
      PERFORM semel.key_refuse('missing_part', format('%1$s is null, [] or {}, which %1$s?null accepts', part));
    END IF;
  ELSIF part ~ '^form:.' THEN
    content := semel.key_form(payload, substr(part, 6));
  ELSIF part IN ('message-id', 'task-name', 'queue', 'subscription') OR part ~ '^(header|attribute|ce):.' THEN
    content := convert_to(semel.key_named(named, part), 'UTF8');
  ELSE
    PERFORM semel.key_refuse('bad_part', format('%L is not a part', part));
  END IF;
  IF content IS NULL THEN
    PERFORM semel.key_refuse('missing_part', format('the delivery has no %s', part));
  ELSIF octet_length(content) > 65536 THEN
    PERFORM semel.key_refuse('too_long', format('%s is over 65536 bytes', part));
  END IF;
  RETURN semel.key_field(kind, content);
END $f$;

REVOKE ALL ON FUNCTION semel.key_decimal(text), semel.key_form_bytes(text), semel.key_form(text, text) FROM PUBLIC;
