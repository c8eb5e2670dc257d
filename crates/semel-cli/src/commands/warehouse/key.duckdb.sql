-- semel_key_scalar: the key of a delivery, encoding v1, from parts that are strings, whole numbers, plain fractions, true,
-- false or, with /order_id?null, null. It is Semel's key or NULL, never another key. NULL for arrays, objects, form:NAME,
-- ~json and numbers that DuckDB may have rounded, and for what Semel refuses; but nesting beyond 64 levels and over a
-- million members are not refused.
-- named is a MAP of the delivery's metadata: MAP {'message-id': '42', 'attribute:tenant': 'a'}.
--   SELECT semel_key_scalar('shop', 'orders', ['/order_id'], payload) FROM landing;
CREATE OR REPLACE MACRO semel_key_field(kind, content) AS
  encode(kind) || unhex(printf('%016x', octet_length(content))) || content;

CREATE OR REPLACE MACRO semel_key_scope(kind, name) AS CASE
  WHEN name IS NULL THEN ''::BLOB
  WHEN name <> '' AND (kind = 'm' OR octet_length(encode(name)) <= 255) THEN semel_key_field(kind, encode(name))
END;

-- DuckDB reads more than JSON: trailing commas, comments, NaN. It also takes the first of two members of one name.
CREATE OR REPLACE MACRO semel_key_json(payload) AS CASE
  WHEN NOT json_valid(payload) THEN NULL
  WHEN regexp_matches(regexp_replace(payload, '"(?:[^"\\]|\\.)*"', '""', 'g'), '(?i)nan|inf|/|,\s*[\]}]') THEN NULL
  WHEN (SELECT count(key) > count(DISTINCT (parent, key)) FROM json_tree(CASE WHEN json_valid(payload) THEN payload ELSE 'null' END) WHERE key IS NOT NULL) THEN NULL
  ELSE payload
END;

-- A double between these bounds is written as RFC 8785 writes it, but for the .0 of a whole number.
CREATE OR REPLACE MACRO semel_key_double(value) AS CASE
  WHEN value = 0 THEN '0'
  WHEN abs(value) >= 1e-4 AND abs(value) < 1e15 THEN regexp_replace(value::VARCHAR, '\.0$', '')
END;

-- DuckDB rounds numbers when it reads them, and does not say which: that changes nothing where each fraction of the payload
-- has at most 15 digits, or is what DuckDB writes for the double.
CREATE OR REPLACE MACRO semel_key_rounded(literal) AS CASE
  WHEN NOT regexp_matches(literal, '[.eE]') THEN false
  WHEN TRY_CAST(literal AS DOUBLE) = 0 THEN regexp_matches(literal, '^[-0.]*[1-9]')
  ELSE length(regexp_replace(literal, '[eE].*|[-.]', '', 'g')) > 15 AND literal IS DISTINCT FROM TRY_CAST(literal AS DOUBLE)::VARCHAR
END;

CREATE OR REPLACE MACRO semel_key_exact(document) AS len(list_filter(
  regexp_extract_all(regexp_replace(document, '"(?:[^"\\]|\\.)*"', '""', 'g'), '-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?'),
  lambda it: semel_key_rounded(it))) = 0;

CREATE OR REPLACE MACRO semel_key_at(document, pointer) AS CASE json_type(document, pointer)
  WHEN 'VARCHAR' THEN semel_key_field('s', encode(json_extract_string(document, pointer)))
  WHEN 'BIGINT' THEN semel_key_field('d', encode(json_extract_string(document, pointer)))
  WHEN 'UBIGINT' THEN semel_key_field('d', encode(json_extract_string(document, pointer)))
  WHEN 'DOUBLE' THEN CASE WHEN semel_key_exact(document) THEN
    semel_key_field('d', encode(semel_key_double(json_extract_string(document, pointer)::DOUBLE))) END
  WHEN 'BOOLEAN' THEN semel_key_field('b', encode(json_extract_string(document, pointer)))
END;

-- Header names ignore the case of ASCII letters.
CREATE OR REPLACE MACRO semel_key_fold(name) AS CASE
  WHEN NOT starts_with(name, 'header:') THEN name
  WHEN octet_length(encode(name)) = length(name) THEN lower(name)
END;

CREATE OR REPLACE MACRO semel_key_part(part, payload, document, named) AS CASE
  WHEN part = 'body' THEN semel_key_field('h', unhex(sha256(encode(payload))))
  WHEN regexp_full_match(part, '(?:/(?:[^~/]|~[01])*)+', 's') AND NOT ends_with(part, '?null') THEN semel_key_at(document, part)
  WHEN regexp_full_match(part, '(?:/(?:[^~/]|~[01])*)+', 's') THEN CASE json_type(document, left(part, -5))
    WHEN 'NULL' THEN semel_key_field('z', encode('null'))
    ELSE semel_key_at(document, left(part, -5))
  END
  WHEN regexp_full_match(part, 'message-id|task-name|queue|subscription|(?:header|attribute|ce):.+', 's') THEN
    semel_key_field('s', encode(list_filter(map_entries(named), lambda it: semel_key_fold(it.key) = semel_key_fold(part))[1].value))
END;

-- A field has 9 bytes beside its content, which has at most 65536.
CREATE OR REPLACE MACRO semel_key_parts(rule, payload, document, named) AS
  list_transform(rule, lambda part: semel_key_part(part, payload, document, named));

CREATE OR REPLACE MACRO semel_key_scalar(namespace, route, rule, payload, method := NULL, caller := NULL,
                                         named := MAP {}::MAP(VARCHAR, VARCHAR)) AS (
  SELECT CASE
    WHEN len(parts) > 0 AND len(list_filter(parts, lambda it: it IS NULL OR octet_length(it) > 65536 + 9)) = 0 THEN
      'v1_' || sha256('semel-key-v1'::BLOB || semel_key_scope('n', COALESCE(namespace, '')) ||
        semel_key_scope('r', COALESCE(route, '')) || semel_key_scope('m', method) || semel_key_scope('c', caller) ||
        list_reduce(parts, lambda done, part: done || part))
  END
  FROM (SELECT semel_key_parts(rule, payload, document, named) AS parts FROM (SELECT semel_key_json(payload) AS document))
);
