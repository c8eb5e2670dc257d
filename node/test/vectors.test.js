'use strict';
// What completion and `once` write is what vectors/firestore.json says, as in Rust and Python, where it is read too.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { Already, Stale, completed, onceDigest, outcome, remembered } = require('../records.js');
const { VECTORS, decoded } = require('./documents.js');

const REFUSALS = { stale: Stale, already: Already };

for (const vector of VECTORS.outcomes) {
  test(`outcome: ${vector.name}`, () => {
    const made = () => outcome(vector.status, vector.headers, vector.body.repeat(vector.body_times ?? 1));
    if (vector.refused) assert.throws(made, RangeError);
    else assert.equal(made().toString('hex'), vector.result);
  });
}

for (const vector of VECTORS.complete) {
  test(`completion: ${vector.name}`, () => {
    const result = outcome(vector.status, vector.headers, vector.body);
    const complete = () => completed(vector.key, decoded(vector.before), vector.fence, result, vector.now);
    if (vector.refused) assert.throws(complete, REFUSALS[vector.refused]);
    else assert.deepEqual(complete(), decoded(vector.writes));
  });
}

for (const vector of VECTORS.once) {
  test(`once: ${vector.name}`, () => {
    const digest = onceDigest(vector.text);
    assert.equal(`v1_${digest.toString('hex')}`, vector.id);
    const written = remembered(digest, decoded(vector.before), vector.keep, vector.now);
    assert.deepEqual(written, decoded(vector.document) ?? null);
    assert.equal(written !== null, vector.answer);
  });
}

test('text without UTF-8 is refused', () => {
  assert.throws(() => onceDigest('half \ud800'), /surrogate/);
});
