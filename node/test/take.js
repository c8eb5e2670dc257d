'use strict';
// Takes a lamp from stock by a batch, and kills itself at a moment: take.js PROJECT KEY FENCE MOMENT

const { Firestore } = require('@google-cloud/firestore');
const { complete, runInBatch } = require('../index.js');

const [projectId, key, fence, dieAt] = process.argv.slice(2);
const db = new Firestore({ projectId });

function reached(moment) {
  if (moment === dieAt) process.kill(process.pid, 'SIGKILL');
}

async function take(batch) {
  const found = await db.doc('stock/lamp').get();
  reached('read');
  await complete(batch, key, fence);
  batch.update(found.ref, { n: found.get('n') - 1 }, { lastUpdateTime: found.updateTime });
  reached('filled');
}

runInBatch(db, take).then(() => reached('committed'));
