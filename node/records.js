'use strict';
// Records as documents of Firestore: what completion and `once` write, without any I/O. Times are microseconds since 1970,
// as in the Rust store; `vectors/firestore.json` holds what every language must make of them.

const { createHash } = require('node:crypto');

// A document holds 1 MiB, and the store's own parts of results begin above this.
const RESULT_BYTES_MAX = 900_000;

// How long after its expiry a TTL policy may delete a record: clocks and retries are long done by then.
const DELETE_AFTER_US = 86_400_000_000;

const [RUNNING, SUCCEEDED, PARKED] = [1, 2, 5];

/** Another run, or an operator, owns this work now: nothing may be written. */
class Stale extends Error {
  name = 'Stale';
}

/**
 * This very run is completed already: an earlier commit of it was written, though its answer may have been lost. Write
 * nothing more. Behind a gate the sender hears what was stored, whatever the handler answers now.
 */
class Already extends Error {
  name = 'Already';
}

/** What every duplicate hears, as all stores keep it: version, length of the head, head, body. */
function outcome(status, headers, body) {
  if (!Number.isInteger(status) || status < 100 || status > 599) {
    throw new RangeError(`status ${status} is not one from 100 to 599`);
  }
  const head = { status, headers: keptHeaders(headers) };
  let result = framed(head, Buffer.from(body));
  if (result.length > RESULT_BYTES_MAX) result = framed({ ...head, body: 'not-kept' }, Buffer.alloc(0));
  if (result.length > RESULT_BYTES_MAX) {
    throw new RangeError(`the headers of an outcome take more than ${RESULT_BYTES_MAX} bytes`);
  }
  return result;
}

/** The fields that change when the run with this fence succeeds. */
function completed(key, record, fence, result, now) {
  const state = Number(record?.state);
  if (Number(record?.fence) !== fence || ![RUNNING, SUCCEEDED, PARKED].includes(state)) {
    throw new Stale(`${key}: the run with fence ${fence} was overtaken, or has failed; it must write nothing`);
  }
  if (state === SUCCEEDED) {
    throw new Already(`${key}: the run with fence ${fence} is completed already; write nothing more`);
  }
  const expiresAt = Number(record.expires_at);
  const retention = expiresAt - Number(record.lease_until);
  return { state: SUCCEEDED, lease_until: now, result, ...expiry(Math.max(expiresAt, now + retention)) };
}

/** The identity of a name. It has a tag of its own, so that it never meets a gate's record. */
function onceDigest(name) {
  if (!name.isWellFormed()) throw new TypeError('the name holds half a surrogate pair, which has no UTF-8');
  const text = Buffer.from(name);
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE(BigInt(text.length));
  return createHash('sha256').update('semel-once-v1').update(length).update(text).digest();
}

/** The record that remembers a name for so many microseconds; nothing when it is remembered already. */
function remembered(digest, record, keep, now) {
  if (record && Number(record.expires_at) > now) return null;
  const fence = record ? Math.max(now, Number(record.fence) + 1) : now;
  return {
    fp: digest,
    owner: Buffer.alloc(16),
    state: SUCCEEDED,
    attempts: 1,
    doubts: 0,
    in_doubt: false,
    acts_until: null,
    doubted_at: null,
    born: fence,
    fence,
    lease_until: now,
    result: null,
    label: null,
    ...expiry(now + keep),
  };
}

function checkedKey(key) {
  if (!/^v1_[0-9a-f]{64}$/.test(key)) {
    throw new TypeError(`${JSON.stringify(key)} is not a key, v1_ and 64 hex digits: pass on the header Semel-Key`);
  }
  return key;
}

function checkedFence(fence) {
  const number = typeof fence === 'string' && /^[0-9]+$/.test(fence) ? Number(fence) : fence;
  if (!Number.isSafeInteger(number)) {
    throw new TypeError(`${JSON.stringify(fence)} is not a fence: pass on the header Semel-Fence`);
  }
  return number;
}

/** In lower case, sorted as Rust writes them. */
function keptHeaders(headers) {
  const kept = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return Object.fromEntries(kept.sort(([one], [other]) => (one < other ? -1 : 1)));
}

function framed(head, content) {
  const text = Buffer.from(JSON.stringify(head));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  return Buffer.concat([Buffer.of(1), length, text, content]);
}

function expiry(expiresAt) {
  return { expires_at: expiresAt, delete_at: expiresAt + DELETE_AFTER_US };
}

module.exports = { Stale, Already, outcome, completed, onceDigest, remembered, checkedKey, checkedFence };
