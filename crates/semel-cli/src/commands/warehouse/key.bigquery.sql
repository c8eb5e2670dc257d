-- The key of a delivery, encoding v1, and the fingerprint of its payload alone, as the gate makes them. A delivery that
-- the gate refuses has an error and no key, and fails no query. named has the delivery's metadata as a JSON object of
-- strings: {"message-id": "42", "attribute:tenant": "a"}. Give NULL for what there is not.
--   SELECT semel.semel_key('shop', 'orders', ['/order_id'], CAST(data AS BYTES), NULL, NULL, NULL).key FROM …
-- The column of the payload must be BYTES or STRING: BigQuery's JSON type drops duplicate members and rounds numbers.
CREATE OR REPLACE FUNCTION semel.semel_key(
  namespace STRING, route STRING, rule ARRAY<STRING>, payload BYTES, method STRING, caller STRING, named STRING)
RETURNS STRUCT<key STRING, fingerprint STRING, error STRING>
DETERMINISTIC LANGUAGE js AS r"""
const ROUNDS = [
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

const START = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

// No key can be made of this delivery; a retry cannot help.
class Refused extends Error {
  constructor(code) {
    super(code);
    this.code = code;
  }
}

// A number as the payload writes it.
class Literal {
  constructor(text) {
    this.text = text;
  }
}

// === the key and the fingerprint ===

function keyOf(rule, bytes, scope, named) {
  const message = [...utf8('semel-key-v1')];
  for (const [kind, name] of scope) {
    const content = utf8(name);
    if (content.length === 0) throw new Refused('empty');
    if (kind !== 'm' && content.length > 255) throw new Refused('too_long');
    message.push(...field(kind, content));
  }
  if (rule.length === 0) throw new Refused('empty');
  const isNamed = /^(?:message-id|task-name|queue|subscription|(?:header|attribute|ce|form):.+)$/s;
  const isPointer = /^(?:\/(?:[^~/]|~[01])*(?:~json)?)+(?:\?null)?$/s;
  for (const part of rule) {
    if (part !== 'body' && !isNamed.test(part) && !isPointer.test(part)) throw new Refused('bad_part');
  }
  const document = rule.some(part => part[0] === '/') ? readJson(bytes) : null;
  for (const part of rule) {
    const [kind, content] = readPart(part, bytes, document, named);
    for (const byte of field(kind, content)) message.push(byte);
  }
  return 'v1_' + hex(sha256(message));
}

function readPart(part, bytes, document, named) {
  if (part === 'body') return ['h', sha256(bytes)];
  let kind = 's', text;
  if (part[0] === '/') {
    const pointer = part.replace(/\?null$/, '');
    const value = follow(document, pointer);
    kind = kindOf(value);
    text = kind === 's' ? value : canonical(value);
    if (pointer === part && kind !== 's' && ['null', '[]', '{}'].includes(text)) throw new Refused('missing_part');
  } else if (part.startsWith('form:')) {
    text = formField(bytes, part.slice(5));
  } else {
    text = named.get(fold(part));
  }
  if (text === undefined) throw new Refused('missing_part');
  const content = utf8(text);
  if (content.length > 65536) throw new Refused('too_long');
  return [kind, content];
}

function fingerprintOf(bytes) {
  let piece;
  try {
    piece = field('j', valueEncoding(readJson(bytes)));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    piece = field('b', bytes);
  }
  return hex(sha256([2, ...piece]));
}

function valueEncoding(value) {
  if (value === null) return utf8('z');
  if (value === true) return utf8('t');
  if (value === false) return utf8('f');
  if (value instanceof Literal) {
    return short(utf8('d' + ownDigits(value.text).replace(/^(-?[1-9][0-9]*?)(0+)$/, (_, digits, zeros) => digits + 'e' + zeros.length)));
  }
  if (typeof value === 'string') return short(utf8('s' + value));
  const encoding = utf8(Array.isArray(value) ? 'a' : 'o');
  for (const one of Array.isArray(value) ? value : sortedMembers(value)) {
    const inner = valueEncoding(one);
    encoding.push(inner.length, ...inner);
  }
  return short(encoding);
}

function sortedMembers(value) {
  const names = [...value.keys()].sort((a, b) => byBytes(utf8(a), utf8(b)));
  return names.flatMap(name => [name, value.get(name)]);
}

function byBytes(a, b) {
  for (let i = 0; i < a.length && i < b.length; i++) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}

function short(encoding) {
  return encoding.length <= 32 ? encoding : [35, ...sha256(encoding)];
}

function field(kind, content) {
  const length = [0, 0, 0, 0, content.length >>> 24, content.length >>> 16 & 255, content.length >>> 8 & 255, content.length & 255];
  return utf8(kind).concat(length, content);
}

function fold(name) {
  return name.startsWith('header:') ? name.replace(/[A-Z]/g, letter => letter.toLowerCase()) : name;
}

// What is not an object of strings has nothing that a rule could name.
function metadata(named) {
  let found;
  try {
    found = Object.entries(JSON.parse(named) || {});
  } catch (_) {
    found = [];
  }
  return new Map(found.filter(([, value]) => typeof value === 'string').map(([name, value]) => [fold(name), value]));
}

// === JSON, read so that no two readers differ ===

function readJson(bytes) {
  const text = utf8Text(bytes);
  try {
    JSON.parse(text);
  } catch (_) {
    throw new Refused('missing_part');
  }
  // The grammar holds from here on, so that the tokens need not be checked.
  const token = /[{}[\]:,]|true|false|null|-?[0-9][-+.0-9eE]*/y;
  let at = 0, members = 0;

  function next() {
    while (' \t\n\r'.includes(text[at])) at++;
    if (text[at] === '"') return string();
    token.lastIndex = at;
    const found = token.exec(text)[0];
    at += found.length;
    return found;
  }

  function string() {
    const start = at;
    for (at++; text[at] !== '"'; at++) if (text[at] === '\\') at++;
    at++;
    const value = JSON.parse(text.slice(start, at));
    if (/[\ud800-\udfff]/u.test(value)) throw new Refused('lone_surrogate');
    return { value };
  }

  function read(found, depth) {
    if (typeof found === 'object') return found.value;
    if ((found === '[' || found === '{') && depth > 64) throw new Refused('too_deep');
    if (found === '[') return items(depth);
    if (found === '{') return object(depth);
    const words = { 'true': true, 'false': false, 'null': null };
    return found in words ? words[found] : new Literal(found);
  }

  function items(depth) {
    const value = [];
    for (let found = next(); found !== ']'; found = next()) {
      if (found !== ',') value.push(read(found, depth + 1));
    }
    return value;
  }

  function object(depth) {
    const value = new Map();
    for (let found = next(); found !== '}'; found = next()) {
      if (found === ',') continue;
      if (value.has(found.value)) throw new Refused('duplicate_member');
      if (++members > 1000000) throw new Refused('too_many_members');
      next();
      value.set(found.value, read(next(), depth + 1));
    }
    return value;
  }

  return read(next(), 1);
}

function follow(value, pointer) {
  for (const segment of pointer.split('/').slice(1)) {
    const name = segment.replace(/~json$/, '').replace(/~1/g, '/').replace(/~0/g, '~');
    if (value instanceof Map) value = value.get(name);
    else if (Array.isArray(value) && /^(?:0|[1-9][0-9]{0,8})$/.test(name)) value = value[Number(name)];
    else value = undefined;
    if (value === undefined) throw new Refused('missing_part');
    if (!segment.endsWith('~json')) continue;
    if (typeof value !== 'string') throw new Refused('missing_part');
    value = readJson(utf8(value));
  }
  return value;
}

// The value of a field of a form; undefined when there is none, or none that is UTF-8.
function formField(bytes, name) {
  const wanted = utf8(name).join();
  const pairs = split(bytes, 38).map(pair => [pair, pair.indexOf(61)]);
  const halves = pairs.map(([pair, at]) => at < 0 ? [pair, []] : [pair.slice(0, at), pair.slice(at + 1)]);
  const found = halves.filter(([written]) => (formBytes(written) || [-1]).join() === wanted);
  if (found.length > 1) throw new Refused('duplicate_member');
  const content = found.length === 1 ? formBytes(found[0][1]) : null;
  return content === null ? undefined : utf8Text(content);
}

// The bytes that a name or value of a form means; null when an escape is broken.
function formBytes(written) {
  const meant = [];
  for (let at = 0; at < written.length; at++) {
    if (written[at] !== 37) {
      meant.push(written[at] === 43 ? 32 : written[at]);
      continue;
    }
    const digits = String.fromCharCode(...written.slice(at + 1, at + 3));
    if (!/^[0-9A-Fa-f]{2}$/.test(digits)) return null;
    meant.push(parseInt(digits, 16));
    at += 2;
  }
  return meant;
}

function split(bytes, separator) {
  const pieces = [[]];
  for (const byte of bytes) {
    if (byte === separator) pieces.push([]);
    else pieces[pieces.length - 1].push(byte);
  }
  return pieces;
}

function kindOf(value) {
  if (typeof value === 'string') return 's';
  if (value === null) return 'z';
  if (typeof value === 'boolean') return 'b';
  if (value instanceof Literal) return 'd';
  return Array.isArray(value) ? 'a' : 'o';
}

// === canonical text, RFC 8785 with exact integers ===

function canonical(value) {
  if (value instanceof Literal) return number(value.text);
  if (Array.isArray(value)) return '[' + value.map(canonical).join(',') + ']';
  if (!(value instanceof Map)) return JSON.stringify(value);
  const names = [...value.keys()].sort();
  return '{' + names.map(name => JSON.stringify(name) + ':' + canonical(value.get(name))).join(',') + '}';
}

function number(literal) {
  const integer = /^(-?)([0-9]+)$/.exec(literal);
  if (integer) {
    const [, sign, digits] = integer;
    const most = sign ? '9223372036854775808' : '18446744073709551615';
    if (digits.length > most.length || (digits.length === most.length && digits > most)) throw new Refused('wide_integer');
    return digits === '0' ? '0' : literal;
  }
  const value = Number(literal);
  if (!Number.isFinite(value)) throw new Refused('number_overflow');
  const shortest = value === 0 ? '0' : String(value);
  if (ownDigits(literal) !== shortest) throw new Refused('inexact_number');
  return shortest;
}

// The digits of a literal without zeros around them, laid out as ECMAScript does: one text for all spellings of a number,
// unless its exponent has more than 18 digits.
function ownDigits(literal) {
  const [, sign, whole, fraction = '', exponentSign = '', exponent = ''] =
    /^(-?)([0-9]+)\.?([0-9]*)(?:[eE]([-+]?)0*([0-9]*))?$/.exec(literal);
  const padded = (whole + fraction).replace(/^0+/, '');
  if (padded === '') return '0';
  let end = padded.length;
  while (padded[end - 1] === '0') end--;
  const digits = padded.slice(0, end);
  if (exponent.length > 18) return literal;
  const point = BigInt(padded.length - fraction.length) + BigInt(exponentSign.replace('+', '') + (exponent || '0'));
  if (point > 21n || point < -5n) {
    const power = point - 1n;
    return sign + digits[0] + (digits.length > 1 ? '.' + digits.slice(1) : '') + 'e' + (power < 0n ? '' : '+') + power;
  }
  const at = Number(point);
  if (at >= digits.length) return sign + digits + '0'.repeat(at - digits.length);
  if (at > 0) return sign + digits.slice(0, at) + '.' + digits.slice(at);
  return sign + '0.' + '0'.repeat(-at) + digits;
}

// === bytes: these engines have neither Buffer, nor TextEncoder, nor crypto ===

function utf8(text) {
  const bytes = [];
  for (const character of text) {
    const code = character.codePointAt(0);
    if (code < 0x80) bytes.push(code);
    else if (code < 0x800) bytes.push(0xc0 | code >> 6, 0x80 | code & 63);
    else if (code < 0x10000) bytes.push(0xe0 | code >> 12, 0x80 | code >> 6 & 63, 0x80 | code & 63);
    else bytes.push(0xf0 | code >> 18, 0x80 | code >> 12 & 63, 0x80 | code >> 6 & 63, 0x80 | code & 63);
  }
  return bytes;
}

// What is not UTF-8 is not JSON.
function utf8Text(bytes) {
  const least = [0, 0x80, 0x800, 0x10000];
  const texts = [];
  for (let at = 0; at < bytes.length;) {
    const first = bytes[at++];
    const more = first < 0x80 ? 0 : first >> 5 === 6 ? 1 : first >> 4 === 14 ? 2 : first >> 3 === 30 ? 3 : -1;
    if (more < 0) throw new Refused('missing_part');
    let code = more === 0 ? first : first & 63 >> more;
    for (let i = 0; i < more; i++, at++) {
      if (at >= bytes.length || bytes[at] >> 6 !== 2) throw new Refused('missing_part');
      code = code << 6 | bytes[at] & 63;
    }
    if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) throw new Refused('missing_part');
    texts.push(String.fromCodePoint(code));
  }
  return texts.join('');
}

function base64Bytes(text) {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const bytes = [];
  let held = 0, bits = 0;
  for (const letter of text.replace(/=+$/, '')) {
    held = held << 6 | letters.indexOf(letter);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes.push(held >> bits & 255);
      held &= (1 << bits) - 1;
    }
  }
  return bytes;
}

function sha256(content) {
  const state = START.slice();
  const padded = content.concat([0x80], Array((119 - content.length % 64) % 64).fill(0));
  const bits = content.length * 8;
  const high = Math.floor(bits / 0x100000000);
  for (const word of [high, bits >>> 0]) padded.push(word >>> 24, word >>> 16 & 255, word >>> 8 & 255, word & 255);
  const turned = (word, by) => word >>> by | word << 32 - by;
  const words = [];
  for (let block = 0; block < padded.length; block += 64) {
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      if (i < 16) {
        const at = block + 4 * i;
        words[i] = padded[at] << 24 | padded[at + 1] << 16 | padded[at + 2] << 8 | padded[at + 3];
      } else {
        const early = words[i - 15], late = words[i - 2];
        const s0 = turned(early, 7) ^ turned(early, 18) ^ early >>> 3;
        const s1 = turned(late, 17) ^ turned(late, 19) ^ late >>> 10;
        words[i] = words[i - 16] + s0 + words[i - 7] + s1 | 0;
      }
      const s1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
      const t1 = h + s1 + (e & f ^ ~e & g) + ROUNDS[i] + words[i] | 0;
      const s0 = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22);
      const t2 = s0 + (a & b ^ a & c ^ b & c) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, d + t1 | 0, c, b, a, t1 + t2 | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, i) => { state[i] = state[i] + word | 0; });
  }
  return state.flatMap(word => [word >>> 24, word >>> 16 & 255, word >>> 8 & 255, word & 255]);
}

function hex(bytes) {
  return bytes.map(byte => byte.toString(16).padStart(2, '0')).join('');
}

// BYTES come as base64.
const bytes = base64Bytes(payload || '');
const scope = [['n', namespace || ''], ['r', route || ''], ['m', method], ['c', caller]].filter(([, name]) => name !== null);
try {
  return { key: keyOf(rule || [], bytes, scope, metadata(named)), fingerprint: fingerprintOf(bytes), error: null };
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  return { key: null, fingerprint: fingerprintOf(bytes), error: error.code };
}
""";
