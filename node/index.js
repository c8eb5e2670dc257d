'use strict';
// Completion inside the handler's own Firestore transaction or batch; index.d.ts says what each function promises.

const { Timestamp, Transaction, WriteBatch } = require('@google-cloud/firestore');
const records = require('./records.js');

const PREFIX = 'semel';
const JSON_HEADERS = { 'content-type': 'application/json' };
const WEEK_MS = 7 * 86_400_000;
const PAUSE_MS_MAX = 500;

// ALREADY_EXISTS, FAILED_PRECONDITION, ABORTED: a batch was not written because somebody else wrote first. Or it was
// written, its answer was lost, and the client's own repetition was refused: then reading again finds that out.
const REFUSED = [6, 9, 10];

async function complete(writer, key, fence, status = 200, body = '', options = {}) {
  const { headers = JSON_HEADERS, prefix = PREFIX } = options;
  const number = records.checkedFence(fence);
  const result = records.outcome(status, headers, body);
  const found = await read(writer, prefix, records.checkedKey(key));
  const fields = records.completed(key, found.data(), number, result, microseconds(found.readTime));
  update(writer, found, fields);
}

async function once(writer, name, options = {}) {
  const { retentionMs = WEEK_MS, prefix = PREFIX } = options;
  if (!(retentionMs > 0)) throw new RangeError('once needs a retention above zero');
  const digest = records.onceDigest(name);
  const found = await read(writer, prefix, `v1_${digest.toString('hex')}`);
  const keep = Math.round(retentionMs * 1000);
  const fields = records.remembered(digest, found.data(), keep, microseconds(found.readTime));
  if (!fields) return false;
  if (found.exists) update(writer, found, fields);
  else writer.create(found.ref, stored(fields));
  return true;
}

async function runInBatch(db, fill, { withinMs = 30_000 } = {}) {
  const deadline = performance.now() + withinMs;
  for (let pause = 10; ; pause = Math.min(2 * pause, PAUSE_MS_MAX)) {
    const batch = db.batch();
    const value = await fill(batch);
    if (batch.isEmpty) return value;
    try {
      await batch.commit();
      return value;
    } catch (error) {
      if (!REFUSED.includes(error.code) || performance.now() + pause > deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, Math.random() * pause));
  }
}

/** The record, locked if that is in a transaction. */
async function read(writer, prefix, key) {
  if (!(writer instanceof Transaction || writer instanceof WriteBatch)) {
    throw new TypeError(
      'the writer is no Transaction or WriteBatch of the @google-cloud/firestore that semel-firestore sees: pass your ' +
        'own one, and look with `npm ls @google-cloud/firestore` whether two copies are installed',
    );
  }
  const ref = writer._firestore.collection(`${prefix}_records`).doc(key);
  return writer instanceof Transaction ? writer.get(ref) : ref.get();
}

/** Only if nobody has written it since it was read. */
function update(writer, found, fields) {
  writer.update(found.ref, stored(fields), { lastUpdateTime: found.updateTime });
}

function stored(fields) {
  const seconds = Math.floor(fields.delete_at / 1_000_000);
  const nanoseconds = (fields.delete_at % 1_000_000) * 1000;
  return { ...fields, delete_at: new Timestamp(seconds, nanoseconds) };
}

function microseconds(time) {
  return time.seconds * 1_000_000 + Math.floor(time.nanoseconds / 1000);
}

module.exports = { complete, once, runInBatch, Stale: records.Stale, Already: records.Already };
