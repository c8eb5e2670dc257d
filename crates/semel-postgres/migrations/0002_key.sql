-- semel.key: the key of a delivery, encoding v1, for code that has the payload in the database. It agrees with
-- vectors/check.py, which is the text to read first, on every vector of vectors/keys.json that text can hold.
--   SELECT semel.key('shop', 'orders', ARRAY['/order_id'], payload);
--   SELECT semel.key('shop', 'orders', ARRAY['header:x-id'], payload, named => '{"header:x-id": "A-1001"}');
-- method and caller are left out when NULL. named holds the delivery's metadata as strings, each header once.
-- SM004 refused: 'semel.key: <code>: <sentence>'. The database must be encoded in UTF8.
--
-- The payload is read as json, never jsonb, because json keeps number literals and duplicate members. Two things json
-- cannot do: hand out a string that holds U+0000, and order members by UTF-16. So strings travel *marked*: inside
-- these functions a text has \0 for U+0000 and \b for a backslash, and key_bytes and key_quoted take the marks off.

-- Not IMMUTABLE: a planner may run an immutable call early, and this one must happen only where it is reached.
CREATE OR REPLACE FUNCTION semel.key_refuse(code text, sentence text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'SM004', MESSAGE = format('semel.key: %s: %s', code, sentence),
    HINT = 'The same input is refused every time: correct the rule or the payload, a retry cannot help.';
END $f$;

-- === fields ===

CREATE OR REPLACE FUNCTION semel.key_field(kind text, content bytea) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $f$
  SELECT convert_to(kind, 'UTF8') || int8send(octet_length(content)) || content
$f$;

-- namespace, route name, method or caller; NULL when there is none
CREATE OR REPLACE FUNCTION semel.key_scope(what text, kind text, name text) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  content bytea := convert_to(name, 'UTF8');
BEGIN
  IF name = '' THEN
    PERFORM semel.key_refuse('empty', format('the %s is empty', what));
  ELSIF kind <> 'm' AND octet_length(content) > 255 THEN
    PERFORM semel.key_refuse('too_long', format('the %s is over 255 bytes', what));
  END IF;
  RETURN semel.key_field(kind, content);
END $f$;

-- === strings ===

-- A marked text as UTF-8 bytes.
CREATE OR REPLACE FUNCTION semel.key_bytes(marked text) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $f$
  SELECT COALESCE(string_agg(convert_to(replace(run, '\b', '\'), 'UTF8'), '\x00'::bytea ORDER BY n), ''::bytea)
    FROM string_to_table(marked, '\0') WITH ORDINALITY AS runs(run, n)
$f$;

-- A marked text as a JSON string. PostgreSQL escapes what RFC 8785 escapes; a mark comes out as \\0 or \\b.
CREATE OR REPLACE FUNCTION semel.key_quoted(marked text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $f$
  SELECT replace(replace(to_json(marked)::text, '\\0', '\u0000'), '\\b', '\\')
$f$;

-- What to sort member names by (COLLATE "C"). UTF-8 bytes order as UTF-16 does, except that U+E000 to U+FFFF (first
-- byte ee or ef) come after the characters written as surrogate pairs (first byte f0 to f4).
CREATE OR REPLACE FUNCTION semel.key_order(marked text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $f$
  SELECT replace(replace(regexp_replace(encode(semel.key_bytes(marked), 'hex'), '..', '\& ', 'g'), 'ee ', 'fe '), 'ef ', 'ff ')
$f$;

-- === numbers ===

-- A positive double as ECMAScript's Number::toString writes it.
CREATE OR REPLACE FUNCTION semel.key_double(value float8) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp
SET standard_conforming_strings = on SET extra_float_digits = 1 AS $f$
DECLARE
  written text[] := regexp_match(value::text, '^([0-9]+)\.?([0-9]*)(?:e(.+))?$');
  padded text := written[1] || written[2];
  digits text := ltrim(padded, '0');
  point int := length(written[1]) + COALESCE(written[3]::int, 0) - (length(padded) - length(digits));  -- 0.digits × 10^point
  shorter text;
BEGIN
  digits := rtrim(digits, '0');
  -- PostgreSQL passes over a shorter text that lies exactly halfway to the next double, though it reads back as this
  -- one; ECMAScript takes it. Such a text has at most 16 digits, which happens between 2^54 and 2^130 only.
  IF value > 1e16 AND value < 1e40 THEN
    <<search>>
    FOR size IN 1 .. length(digits) - 1 LOOP
      FOREACH shorter IN ARRAY ARRAY[left(digits, size), (left(digits, size)::bigint + 1)::text] LOOP
        IF (shorter || 'e' || point - size)::float8 = value THEN
          point := point - size + length(shorter);
          digits := rtrim(shorter, '0');
          EXIT search;
        END IF;
      END LOOP;
    END LOOP;
  END IF;
  RETURN CASE
    WHEN point BETWEEN length(digits) AND 21 THEN digits || repeat('0', point - length(digits))
    WHEN point BETWEEN 1 AND 21 THEN left(digits, point) || '.' || substr(digits, point + 1)
    WHEN point BETWEEN -5 AND 0 THEN '0.' || repeat('0', -point) || digits
    ELSE regexp_replace(digits, '^(.)(.+)$', '\1.\2') || CASE WHEN point > 0 THEN 'e+' ELSE 'e-' END || abs(point - 1)
  END;
END $f$;

-- An integer literal as its exact digits, any other as the nearest double.
CREATE OR REPLACE FUNCTION semel.key_number(literal text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $f$
DECLARE
  value float8;
  written text[];
  place numeric;
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
  RETURN CASE WHEN value = 0 THEN '0' WHEN value < 0 THEN '-' || semel.key_double(-value) ELSE semel.key_double(value) END;
END $f$;

-- === the payload as JSON ===

-- Refuses too many levels and duplicate members, anywhere below an array or object.
CREATE OR REPLACE FUNCTION semel.key_check(node json, depth int) RETURNS void
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  twice text;
  below json;
BEGIN
  IF depth > 64 THEN
    PERFORM semel.key_refuse('too_deep', 'the payload nests more than 64 levels');
  ELSIF json_typeof(node) = 'object' THEN
    SELECT m.key INTO twice FROM json_each(node) m GROUP BY m.key HAVING count(*) > 1 LIMIT 1;
    IF FOUND THEN
      PERFORM semel.key_refuse('duplicate_member', format('the payload names %s twice in one object', semel.key_quoted(twice)));
    END IF;
    FOR below IN SELECT m.value FROM json_each(node) m WHERE json_typeof(m.value) IN ('object', 'array') LOOP
      PERFORM semel.key_check(below, depth + 1);
    END LOOP;
  ELSE
    FOR below IN SELECT e.value FROM json_array_elements(node) e WHERE json_typeof(e.value) IN ('object', 'array') LOOP
      PERFORM semel.key_check(below, depth + 1);
    END LOOP;
  END IF;
END $f$;

-- The payload as json with marked strings; whatever two readers could take differently is refused.
CREATE OR REPLACE FUNCTION semel.key_document(payload text) RETURNS json
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $f$
DECLARE
  marked text;
BEGIN
  IF payload IS NULL THEN
    PERFORM semel.key_refuse('missing_part', 'the payload is NULL, so it has no JSON parts');
  END IF;
  BEGIN
    PERFORM payload::json;
  EXCEPTION
    WHEN invalid_text_representation THEN
      PERFORM semel.key_refuse('missing_part', 'the payload is not JSON, so it has no JSON parts');
    WHEN statement_too_complex THEN
      PERFORM semel.key_refuse('too_deep', 'the payload nests more than 64 levels');
  END;
  -- With \\ written as \u005c, every \u is the beginning of an escape.
  marked := replace(payload, '\\', '\u005c');
  IF regexp_replace(marked, '\\u[dD][89abAB]..\\u[dD][c-fC-F]..', '', 'g') ~ '\\u[dD][89a-fA-F]' THEN
    PERFORM semel.key_refuse('lone_surrogate', 'a string of the payload holds half a surrogate pair');
  END IF;
  marked := regexp_replace(replace(marked, '\u0000', '\\0'), '\\u005[cC]', '\\\\b', 'g');
  IF json_typeof(marked::json) IN ('object', 'array') THEN
    PERFORM semel.key_check(marked::json, 1);
  END IF;
  RETURN marked::json;
END $f$;

-- What an RFC 6901 pointer leads to; NULL when there is nothing.
CREATE OR REPLACE FUNCTION semel.key_at(document json, pointer text) RETURNS json
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $f$
DECLARE
  node json := document;
  name text;
BEGIN
  FOREACH name IN ARRAY regexp_split_to_array(substr(pointer, 2), '/') LOOP
    name := replace(replace(replace(name, '~1', '/'), '~0', '~'), '\', '\b');
    IF json_typeof(node) = 'object' THEN
      node := node -> name;
    ELSIF json_typeof(node) = 'array' AND name ~ '^(0|[1-9][0-9]{0,8})$' THEN
      node := node -> name::int;
    ELSE
      RETURN NULL;
    END IF;
  END LOOP;
  RETURN node;
END $f$;

-- Canonical text of json with marked strings.
CREATE OR REPLACE FUNCTION semel.key_text(node json) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $f$
BEGIN
  CASE json_typeof(node)
    WHEN 'object' THEN
      RETURN (SELECT '{' || COALESCE(string_agg(semel.key_quoted(m.key) || ':' || semel.key_text(m.value), ','
                                                ORDER BY semel.key_order(m.key) COLLATE "C"), '') || '}'
                FROM json_each(node) m);
    WHEN 'array' THEN
      RETURN (SELECT '[' || COALESCE(string_agg(semel.key_text(e.value), ',' ORDER BY e.n), '') || ']'
                FROM json_array_elements(node) WITH ORDINALITY AS e(value, n));
    WHEN 'string' THEN RETURN semel.key_quoted(node #>> '{}');
    WHEN 'number' THEN RETURN semel.key_number(node #>> '{}');
    WHEN 'boolean' THEN RETURN node #>> '{}';
    WHEN 'null' THEN RETURN 'null';
  END CASE;
END $f$;

-- === parts ===

-- A value of the delivery's metadata; header names ignore the case of ASCII letters. NULL when there is none.
CREATE OR REPLACE FUNCTION semel.key_named(named jsonb, part text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $f$
  SELECT CASE WHEN part LIKE 'header:%'
              THEN (SELECT h.value FROM jsonb_each_text(named) h
                     WHERE h.key LIKE 'header:%' AND lower(h.key COLLATE "C") = lower(part COLLATE "C") LIMIT 1)
              ELSE named ->> part END
$f$;

-- One part of the rule as a field.
CREATE OR REPLACE FUNCTION semel.key_part(part text, payload text, document json, named jsonb) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  node json;
  kind text := 's';
  content bytea;
BEGIN
  IF part = 'body' THEN
    kind := 'h';
    content := sha256(convert_to(payload, 'UTF8'));
  ELSIF part LIKE '/%' AND part !~ '~([^01]|$)' THEN
    node := semel.key_at(document, part);
    kind := CASE json_typeof(node) WHEN 'string' THEN 's' WHEN 'number' THEN 'd' WHEN 'boolean' THEN 'b'
                                   WHEN 'null' THEN 'z' WHEN 'array' THEN 'a' WHEN 'object' THEN 'o' END;
    content := CASE kind WHEN 's' THEN semel.key_bytes(node #>> '{}') ELSE convert_to(semel.key_text(node), 'UTF8') END;
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

-- SECURITY DEFINER so that a role needs EXECUTE on this one function only; nothing here reads or writes a table.
CREATE OR REPLACE FUNCTION semel.key(namespace text, route text, rule text[], payload text, method text DEFAULT NULL,
                                     caller text DEFAULT NULL, named jsonb DEFAULT '{}') RETURNS text
LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$
DECLARE
  message bytea := 'semel-key-v1';
  document json;
  part text;
BEGIN
  message := message || semel.key_scope('namespace', 'n', COALESCE(namespace, ''))
                     || semel.key_scope('route name', 'r', COALESCE(route, ''))
                     || COALESCE(semel.key_scope('method', 'm', method), '')
                     || COALESCE(semel.key_scope('caller', 'c', caller), '');
  IF COALESCE(cardinality(rule), 0) = 0 THEN
    PERFORM semel.key_refuse('empty', 'the rule names no part');
  END IF;
  IF EXISTS (SELECT FROM unnest(rule) AS r(named_part) WHERE r.named_part LIKE '/%') THEN
    document := semel.key_document(payload);
  END IF;
  FOREACH part IN ARRAY rule LOOP
    message := message || semel.key_part(part, payload, document, named);
  END LOOP;
  RETURN 'v1_' || encode(sha256(message), 'hex');
END $f$;

REVOKE ALL ON FUNCTION semel.key_refuse(text, text), semel.key_field(text, bytea), semel.key_scope(text, text, text),
  semel.key_bytes(text), semel.key_quoted(text), semel.key_order(text), semel.key_double(float8), semel.key_number(text),
  semel.key_check(json, int), semel.key_document(text), semel.key_at(json, text), semel.key_text(json),
  semel.key_named(jsonb, text), semel.key_part(text, text, json, jsonb),
  semel.key(text, text, text[], text, text, text, jsonb) FROM PUBLIC;
DO $d$ BEGIN
  IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'semel_handler') THEN
    GRANT EXECUTE ON FUNCTION semel.key(text, text, text[], text, text, text, jsonb) TO semel_handler;
  END IF;
END $d$;
