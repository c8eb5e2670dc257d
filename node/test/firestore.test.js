'use strict';
// On Google's emulator: record and effect are one Commit, in transactions and in batches.

const assert = require('node:assert/strict');
const { spawnSync } = require('node:child_process');
const { randomUUID } = require('node:crypto');
const path = require('node:path');
const { after, test } = require('node:test');
const { FieldValue, Firestore } = require('@google-cloud/firestore');
const { Already, Stale, complete, once, runInBatch } = require('../index.js');
const { VECTORS, asDocument } = require('./documents.js');
const { startEmulator } = require('./emulator.js');

const RUNNING = VECTORS.complete[0];
const { key: KEY, fence: FENCE } = RUNNING;

/** An empty database with ten lamps in stock, and a record of KEY that runs. */
async function database(t, record = RUNNING.before) {
  const db = new Firestore({ projectId: `test-${randomUUID()}` });
  t.after(() => db.terminate());
  await db.doc('stock/lamp').set({ n: 10 });
  if (record) await db.doc(`semel_records/${KEY}`).set(asDocument(record));
  return db;
}

async function stock(db) {
  return (await db.doc('stock/lamp').get()).get('n');
}

async function record(db) {
  return (await db.doc(`semel_records/${KEY}`).get()).data();
}

const TAKES = {
  transaction: (db, fence = FENCE) =>
    db.runTransaction(async (transaction) => {
      const found = await transaction.get(db.doc('stock/lamp'));
      await complete(transaction, KEY, String(fence), 201, '{"left":9}');
      transaction.update(found.ref, { n: found.get('n') - 1 });
    }),
  batch: (db, fence = FENCE) =>
    runInBatch(db, async (batch) => {
      const found = await db.doc('stock/lamp').get();
      await complete(batch, KEY, fence, 201, '{"left":9}');
      batch.update(found.ref, { n: found.get('n') - 1 }, { lastUpdateTime: found.updateTime });
    }),
};

function takeOnce(db, name) {
  return runInBatch(db, async (batch) => {
    const first = await once(batch, name);
    if (first) batch.update(db.doc('stock/lamp'), { n: FieldValue.increment(-1) });
    return first;
  });
}

/** Google's client sends a Commit again when it is told UNAVAILABLE, though the first may have been written. */
function repeatCommits(db) {
  const send = db.request.bind(db);
  db.request = async (method, ...rest) => {
    if (method === 'commit') await send(method, ...rest);
    return send(method, ...rest);
  };
}

async function main() {
  const emulator = await startEmulator();
  after(() => emulator.stop());
  const { skip } = emulator;

  for (const [kind, take] of Object.entries(TAKES)) {
    test(`${kind}: record and effect are written together, and once`, { skip }, async (t) => {
      const db = await database(t);
      await take(db);
      const written = await record(db);
      assert.deepEqual([await stock(db), written.state], [9, 2]);
      assert.equal(written.result.subarray(-10).toString(), '{"left":9}');
      assert.equal(written.delete_at.toMillis(), Math.floor((written.expires_at + 86_400_000_000) / 1000));
      await assert.rejects(take(db), Already);
      assert.equal(await stock(db), 9);
    });

    test(`${kind}: commit that the client repeats counts once`, { skip }, async (t) => {
      const db = await database(t);
      repeatCommits(db);
      // A transaction that is committed twice is refused; a batch is filled again, and finds what it wrote.
      await assert.rejects(take(db), (error) => error instanceof Already || error.code === 3);
      assert.deepEqual([await stock(db), (await record(db)).state], [9, 2]);
    });

    for (const vector of VECTORS.complete.filter((it) => it.refused === 'stale')) {
      test(`${kind}: stale run writes nothing: ${vector.name}`, { skip }, async (t) => {
        const db = await database(t, vector.before);
        await assert.rejects(take(db, vector.fence), Stale);
        assert.equal(await stock(db), 10);
      });
    }
  }

  test('run that is overtaken between read and commit writes nothing', { skip }, async (t) => {
    const db = await database(t);
    const batch = db.batch();
    await complete(batch, KEY, FENCE);
    batch.update(db.doc('stock/lamp'), { n: 9 });
    await db.doc(`semel_records/${KEY}`).update({ fence: FENCE + 1 });
    await assert.rejects(batch.commit(), { code: 9 });
    assert.deepEqual([await stock(db), (await record(db)).state], [10, 1]);
  });

  test('integers may be read as BigInt', { skip }, async (t) => {
    const { projectId } = await database(t).then((db) => ({ projectId: db.projectId }));
    const db = new Firestore({ projectId, useBigInt: true });
    t.after(() => db.terminate());
    const batch = db.batch();
    await complete(batch, KEY, FENCE);
    await batch.commit();
    assert.equal((await record(db)).state, 2n);
  });

  test('name is true once among many at once', { skip }, async (t) => {
    const db = await database(t);
    const heard = await Promise.all(Array.from({ length: 48 }, (_, number) => takeOnce(db, `order ${number % 4}`)));
    assert.deepEqual([heard.filter(Boolean).length, await stock(db)], [4, 6]);
  });

  test('name in a transaction is true once', { skip }, async (t) => {
    const db = await database(t);
    const take = () =>
      db.runTransaction(async (transaction) => {
        const first = await once(transaction, 'order 7');
        if (first) transaction.update(db.doc('stock/lamp'), { n: FieldValue.increment(-1) });
        return first;
      });
    assert.deepEqual([await take(), await take(), await stock(db)], [true, false, 9]);
  });

  test('name of a commit that the client repeats counts once', { skip }, async (t) => {
    const db = await database(t);
    repeatCommits(db);
    assert.deepEqual([await takeOnce(db, 'order 7'), await stock(db)], [false, 9]);
  });

  test('name is true again after its retention', { skip }, async (t) => {
    const db = await database(t);
    const remember = () => runInBatch(db, (batch) => once(batch, 'order 7', { retentionMs: 1, prefix: 'shop' }));
    const fence = async () => (await db.collection('shop_records').get()).docs[0].get('fence');
    assert.equal(await remember(), true);
    const first = await fence();
    while (!(await remember()));
    assert.ok((await fence()) > first);
  });

  test('batch is given up in time', { skip }, async (t) => {
    const db = await database(t);
    let tries = 0;
    const create = (batch) => (tries++, batch.create(db.doc('stock/lamp'), {}));
    await assert.rejects(runInBatch(db, create, { withinMs: 2_000 }), { code: 6 });
    assert.ok(tries > 1);
  });

  test('wrong argument is named', { skip }, async (t) => {
    const db = await database(t);
    await assert.rejects(complete(db.batch(), 'order-7', 1), /Semel-Key/);
    await assert.rejects(complete(db.batch(), KEY, 'soon'), /Semel-Fence/);
    await assert.rejects(complete(db.batch(), KEY, 1, 42), /status 42/);
    await assert.rejects(complete(db, KEY, 1), /npm ls/);
    await assert.rejects(once(db.batch(), 'order 7', { retentionMs: 0 }), /retention/);
  });

  for (const [moment, ending] of Object.entries({ read: [10, 1], filled: [10, 1], committed: [9, 2] })) {
    test(`killed when ${moment}: both or neither`, { skip }, async (t) => {
      const db = await database(t);
      const words = [...process.execArgv.filter((it) => it.startsWith('--preserve')), path.join(__dirname, 'take.js')];
      const ended = spawnSync(process.execPath, [...words, db.projectId, KEY, String(FENCE), moment], { stdio: 'inherit' });
      assert.equal(ended.signal, 'SIGKILL');
      assert.deepEqual([await stock(db), (await record(db)).state], ending);
    });
  }
}

main();
