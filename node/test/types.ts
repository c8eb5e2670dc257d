// Compiles, and is never run: the declarations fit Google's own.
import { Firestore } from '@google-cloud/firestore';
import { Already, Stale, complete, once, runInBatch } from '../index.js';

export async function take(db: Firestore, key: string, fence: string): Promise<number> {
  await db.runTransaction(async (transaction) => {
    await complete(transaction, key, fence, 201, '{}', { headers: { link: ['</a>', '</b>'] }, prefix: 'shop' });
  });
  const taken: boolean = await runInBatch(db, (batch) => once(batch, 'order 7', { retentionMs: 1000 }), { withinMs: 1 });
  // @ts-expect-error a database commits each write by itself
  await complete(db, key, fence);
  return taken && !(new Stale('') instanceof Already) ? 1 : 0;
}
