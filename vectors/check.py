#!/usr/bin/env python3
"""Semel's key encoding, version 1: a reference to read, and the checker of keys.json.

    python3 vectors/check.py            recompute every vector, verify every relation
    python3 vectors/check.py --write    first fill in key, parts and fingerprint where a vector has no expectation yet

A key is SHA-256 over the tag and the fields; a field is type byte, 8-byte big-endian length, bytes:

    n namespace   r route name   m method (if given)   c caller (if given)   then the rule's parts in order:
    s string   d number   b true or false   z null   a array   o object   h SHA-256 of the whole payload

A string is its UTF-8 bytes, h is 32 raw bytes, every other part is its canonical JSON text (RFC 8785 with exact integers).

null, [] and {} are missing parts, unless the rule's pointer ends in ?null. A segment of a pointer that ends in ~json leads to
a string that holds JSON, and the rest of the pointer continues in there. form:NAME is a field of a form body.

The fingerprint is that of the payload alone: SHA-256 over a version byte and one such field, j with the encoding of a JSON
value, or b with the bytes of a payload that cannot be read as one. An encoding is

    z null   t true   f false   d number's own digits, laid out as RFC 8785 does, zeros at the end of an integer as e and
    their count   s string's UTF-8   a each item   o each name (a string) and value, sorted by name

where items, names and values are encodings behind a byte that is their length, and an encoding of more than 32 bytes is
replaced by # and its SHA-256.

A vector has name, namespace, route, rule, payload (or payload_base64), and optionally method, caller and named; then what
comes of them: key, fingerprint and parts (the text of h is hex), or error with one of the codes of Refused. equal_to and
differs_from name another vector and speak of the keys, same_fingerprint_as and other_fingerprint_than of the fingerprints.
not_in says why an implementation cannot hold the input at all.

A vector may have python: a call of the Python package whose payload this is. It tells the function's module and def, its
terms (once, or task for a Celery task) and the arguments of the call; own, where defaults are part of the key, is the payload
without them, which is compared between repeats; names is what a refusal must say. refused_calls are calls whose arguments
have no JSON, so that no other language can hold them; error may then be type, not_finite or member_name, too.
"""
import base64
import hashlib
import json
import math
import re
import sys
from pathlib import Path
from urllib.parse import unquote_to_bytes

TAG = b"semel-key-v1"
SCOPE_BYTES_MAX = 255  # namespace, route name, caller
PART_BYTES_MAX = 65536
DEPTH_MAX = 64  # levels of arrays and objects in a payload
MEMBERS_MAX = 1_000_000  # of all objects of a payload together
FINGERPRINT_VERSION = b"\x02"
PLAIN_BYTES_MAX = 32  # the longest encoding that is not a digest
EXPONENT_DIGITS_MAX = 18  # of a number whose spellings are all equal
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**64 - 1
NAMED = re.compile(r"message-id|task-name|queue|subscription|(header|attribute|ce):.+", re.DOTALL)
FORM = re.compile(r"form:.+", re.DOTALL)
POINTER = re.compile(r"(/([^~/]|~[01])*(~json)?)+", re.DOTALL)
RELATIONS = (
    ("equal_to", "key", True), ("differs_from", "key", False),
    ("same_fingerprint_as", "fingerprint", True), ("other_fingerprint_than", "fingerprint", False),
)
VECTORS = Path(__file__).with_name("keys.json")


class Refused(Exception):
    """No key can be made. The same input is refused every time, so a retry cannot help.

    Codes: missing_part, bad_part, empty, too_long, too_deep, too_many_members, duplicate_member, lone_surrogate,
    wide_integer, number_overflow and inexact_number. Of several faults any one may be named. The last three matter only
    inside a part the rule names.
    """

    def __init__(self, code, why):
        super().__init__(f"{code}: {why}")
        self.code = code


class Number(str):
    """A number literal exactly as the payload writes it."""


# === the key ===

def key(namespace, route, parts, method=None, caller=None):
    """The key of a delivery, from its scope and the parts that read_parts() found."""
    message = TAG + scope("namespace", b"n", namespace) + scope("route name", b"r", route)
    if method is not None:
        message += scope("method", b"m", method)
    if caller is not None:
        message += scope("caller", b"c", caller)
    for kind, content in parts:
        message += field(kind.encode(), content)
    return "v1_" + hashlib.sha256(message).hexdigest()


def scope(what, kind, text):
    content = text.encode()
    if not content:
        raise Refused("empty", f"the {what} is empty")
    if kind != b"m" and len(content) > SCOPE_BYTES_MAX:
        raise Refused("too_long", f"the {what} is over {SCOPE_BYTES_MAX} bytes")
    return field(kind, content)


def field(kind, content):
    return kind + len(content).to_bytes(8, "big") + content


# === the fingerprint ===

def fingerprint(payload):
    """Tells whether a repeated key carries the same payload, however it is written."""
    try:
        piece = field(b"j", value_encoding(read_json(payload)))
    except Refused:
        piece = field(b"b", payload)
    return hashlib.sha256(FINGERPRINT_VERSION + piece).hexdigest()


def value_encoding(value):
    """The same for all spellings of a JSON value, different for different ones."""
    if isinstance(value, Number):
        text = own_digits(value)
        digits = text.rstrip("0")
        zeros = len(text) - len(digits)
        return short(b"d" + (f"{digits}e{zeros}" if zeros and text != "0" and text.lstrip("-").isdigit() else text).encode())
    if isinstance(value, str):
        return short(b"s" + value.encode())
    if isinstance(value, list):
        return short(b"a" + b"".join(framed(item) for item in value))
    if isinstance(value, dict):
        names = sorted(value, key=str.encode)
        return short(b"o" + b"".join(framed(name) + framed(value[name]) for name in names))
    return {None: b"z", True: b"t", False: b"f"}[value]


def framed(value):
    encoding = value_encoding(value)
    return bytes([len(encoding)]) + encoding


def short(encoding):
    return encoding if len(encoding) <= PLAIN_BYTES_MAX else b"#" + hashlib.sha256(encoding).digest()


# === the parts a rule names ===

def read_parts(rule, payload, named):
    """Every part of the rule as (type, bytes). `named` holds the delivery's metadata, each header once."""
    if not rule:
        raise Refused("empty", "the rule names no part")
    for part in rule:
        known = NAMED.fullmatch(part) or FORM.fullmatch(part) or POINTER.fullmatch(part.removesuffix("?null"))
        if part != "body" and not known:
            raise Refused("bad_part", f"{part!r} is not a part")
    document = read_json(payload) if any(part.startswith("/") for part in rule) else None
    named = {fold(name): value for name, value in named.items()}
    return [read_part(part, payload, document, named) for part in rule]


def read_part(part, payload, document, named):
    if part == "body":
        return "h", hashlib.sha256(payload).digest()
    if part.startswith("/"):
        pointer = part.removesuffix("?null")
        value = at(document, pointer)
        if pointer == part and value in (None, [], {}):
            raise Refused("missing_part", f"{part} is {canonical(value)}, which {part}?null accepts")
        kind, content = encode(value)
    elif FORM.fullmatch(part):
        kind, content = "s", form_field(payload, part.removeprefix("form:"))
    elif fold(part) in named:
        kind, content = "s", named[fold(part)].encode()
    else:
        raise Refused("missing_part", f"the delivery has no {part}")
    if len(content) > PART_BYTES_MAX:
        raise Refused("too_long", f"{part} is over {PART_BYTES_MAX} bytes")
    return kind, content


def fold(name):
    """Header names ignore the case of ASCII letters, nothing else does."""
    return name.encode().lower().decode() if name.startswith("header:") else name


def at(value, pointer):
    """What an RFC 6901 pointer leads to."""
    for segment in pointer.split("/")[1:]:
        name = segment.removesuffix("~json").replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and re.fullmatch("0|[1-9][0-9]{0,8}", name) and int(name) < len(value):
            value = value[int(name)]
        else:
            raise Refused("missing_part", f"the payload has nothing at {pointer}")
        if segment.endswith("~json"):
            if not isinstance(value, str) or isinstance(value, Number):
                raise Refused("missing_part", f"{segment} of {pointer} leads to no string")
            value = read_json(value.encode())
    return value


def form_field(payload, name):
    """The value of a field of an application/x-www-form-urlencoded payload; a field that is there twice has two readings."""
    pairs = [pair.partition(b"=") for pair in payload.split(b"&")]
    found = [value for written, _, value in pairs if form_text(written) == name.encode()]
    if len(found) > 1:
        raise Refused("duplicate_member", f"the form has the field {name} twice")
    content = form_text(found[0]) if found else None
    if content is None:
        raise Refused("missing_part", f"the form has no text in the field {name}")
    return content


def form_text(written):
    """The UTF-8 that a name or value of a form means; None when it is broken."""
    content = unquote_to_bytes(written.replace(b"+", b" "))
    try:
        content.decode()
    except UnicodeDecodeError:
        return None
    return None if re.search(rb"%(?![0-9A-Fa-f]{2})", written) else content


# === the payload as JSON ===

def read_json(payload):
    """The payload with numbers kept as literals; whatever two readers could take differently is refused."""
    try:
        value = json.loads(payload.decode(), object_pairs_hook=members, parse_int=Number, parse_float=Number,
                           parse_constant=not_json)
    except RecursionError:
        raise Refused("too_deep", f"the payload nests more than {DEPTH_MAX} levels") from None
    except ValueError as error:
        raise Refused("missing_part", f"the payload is not JSON: {error}") from None
    if check_whole(value, 1) > MEMBERS_MAX:
        raise Refused("too_many_members", f"the payload has more than {MEMBERS_MAX} members")
    return value


def members(pairs):
    value = dict(pairs)
    if len(value) < len(pairs):
        raise Refused("duplicate_member", "an object of the payload names a member twice")
    return value


def not_json(constant):
    raise ValueError(constant)


def check_whole(value, depth):
    """How many members there are, all objects together."""
    if isinstance(value, (dict, list)):
        if depth > DEPTH_MAX:
            raise Refused("too_deep", f"the payload nests more than {DEPTH_MAX} levels")
        inner = [*value, *value.values()] if isinstance(value, dict) else value
        return sum(check_whole(one, depth + 1) for one in inner) + (len(value) if isinstance(value, dict) else 0)
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise Refused("lone_surrogate", "a string of the payload holds half a surrogate pair")
    return 0


# === canonical text ===

def encode(value):
    """A JSON value as the type and the bytes of a part."""
    if isinstance(value, str) and not isinstance(value, Number):
        return "s", value.encode()
    kinds = {Number: "d", bool: "b", type(None): "z", list: "a", dict: "o"}
    return kinds[type(value)], canonical(value).encode()


def canonical(value):
    if isinstance(value, Number):
        return number(value)
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(name)}:{canonical(value[name])}" for name in names) + "}"
    # Python escapes what RFC 8785 escapes in strings, and writes true, false and null.
    return json.dumps(value, ensure_ascii=False)


def number(literal):
    """An integer literal as its exact digits, any other as ECMAScript writes the nearest double, if that is the same decimal."""
    if re.fullmatch("-?[0-9]+", literal):
        if len(literal) > 20 or not INTEGER_MIN <= int(literal) <= INTEGER_MAX:
            raise Refused("wide_integer", f"{literal} is outside -2^63 to 2^64-1")
        return str(int(literal))
    value = float(literal)
    if math.isinf(value):
        raise Refused("number_overflow", f"{literal} is beyond every double")
    # repr() finds the shortest digits, as ECMAScript does; only the layout differs.
    text = own_digits(repr(value))
    if text != own_digits(literal):
        raise Refused("inexact_number", f"{literal} is {text} as a double")
    return text


def own_digits(literal):
    """The digits of a literal without zeros around them, laid out by Number::toString. All spellings of a decimal are one
    text, except those with more than EXPONENT_DIGITS_MAX digits in the exponent: they stay as they are."""
    parsed = re.fullmatch(r"(-?)([0-9]+)\.?([0-9]*)(?:[eE]([-+]?)0*([0-9]*))?", literal).groups(default="")
    sign, whole, fraction, exponent_sign, exponent = parsed
    digits = (whole + fraction).lstrip("0")
    if not digits.strip("0"):
        return "0"
    if len(exponent) > EXPONENT_DIGITS_MAX:
        return literal
    point = len(digits) - len(fraction) + int(f"{exponent_sign}{exponent or 0}")  # 0.digits × 10^point
    return sign + laid_out(digits.rstrip("0"), point)


def laid_out(digits, point):
    """Number::toString of ECMAScript for 0.digits × 10^point."""
    if len(digits) <= point <= 21:
        return digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return "0." + "0" * -point + digits
    return digits[0] + ("." + digits[1:] if digits[1:] else "") + f"e{point - 1:+d}"


# === the checker ===

def compute(vector):
    """What a vector should say: {"key", "fingerprint", "parts"} or {"error"}."""
    payload = base64.b64decode(vector["payload_base64"]) if "payload_base64" in vector else vector["payload"].encode()
    try:
        parts = read_parts(vector["rule"], payload, vector.get("named", {}))
        made = key(vector["namespace"], vector["route"], parts, vector.get("method"), vector.get("caller"))
    except Refused as refused:
        return {"error": refused.code}
    shown = [{"type": kind, "text": content.hex() if kind == "h" else content.decode()} for kind, content in parts]
    return {"key": made, "fingerprint": fingerprint(payload), "parts": shown}


def faults(vectors):
    """(vector's name, sentence) for everything that does not hold."""
    computed = {vector["name"]: compute(vector) for vector in vectors}
    names = [vector["name"] for vector in vectors]
    for vector in vectors:
        name, mine = vector["name"], computed[vector["name"]]
        if names.count(name) > 1:
            yield name, "is the name of several vectors"
        expected = {word: vector[word] for word in ("key", "fingerprint", "parts", "error") if word in vector}
        if mine != expected:
            yield name, f"expected {json.dumps(expected)[:300]}, computed {json.dumps(mine)[:300]}"
        for relation, word, equal in RELATIONS:
            other = computed.get(vector.get(relation), {})
            if relation in vector and (word not in mine or word not in other or (mine[word] == other[word]) != equal):
                yield name, f"{relation} {vector[relation]} does not hold"


def write(book):
    """Fills in vectors without an expectation. A refusal is never filled in: its author has to mean it."""
    for vector in book["vectors"]:
        if "key" not in vector and "error" not in vector:
            computed = compute(vector)
            vector.update(computed if "key" in computed else {})
    vectors, calls = blocks(book["vectors"]), blocks(book["refused_calls"])
    text = f'{{"encoding": {json.dumps(book["encoding"])}, "vectors": [\n{vectors}\n], "refused_calls": [\n{calls}\n]}}\n'
    VECTORS.write_text(text, encoding="utf-8")


def blocks(items):
    """Each item with a line for each of its words."""
    lines = [",\n".join(f"    {json.dumps(word)}: {json.dumps(item[word])}" for word in item) for item in items]
    return ",\n".join(f"  {{\n{text}\n  }}" for text in lines)


def main():
    book = json.loads(VECTORS.read_text(encoding="utf-8"))
    if book["encoding"] != TAG.decode():
        sys.exit(f"keys.json is written for {book['encoding']}, this is {TAG.decode()}")
    if sys.argv[1:] == ["--write"]:
        write(book)
    found = list(faults(book["vectors"]))
    for name, sentence in found:
        print(f"{name}: {sentence}")
    failed = len({name for name, _ in found})
    print(f"{len(book['vectors']) - failed} passed, {failed} failed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
