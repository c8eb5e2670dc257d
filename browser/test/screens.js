// Every screen, with something on it: of a gate, of a store without a gate, of the local cloud.

import { strict as assert } from 'node:assert';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { freePort, liveALittle, openShop, start } from './shop.js';

/** Gives each screen of a gate in turn to `look(page, name)`. */
export async function eachScreenOfTheGate(page, look) {
  const shop = await openShop();
  try {
    await liveALittle(shop);
    shop.handler.answers.set('G-1', () => new Promise(() => {}));
    const running = shop.task('951', '/charge', { order_id: 'G-1' }).catch(() => {});
    for (const name of ['overview', 'running', 'doubt', 'letters', 'mismatches', 'routes', 'duplicates', 'audit']) {
      await page.goto(shop.ui + (name === 'overview' ? '' : name));
      await look(page, name);
    }
    await page.goto(`${shop.ui}routes/charge`);
    await page.getByLabel('Headers').fill('content-type: application/json\nx-cloudtasks-queuename: orders\nx-cloudtasks-taskname: 1');
    await page.getByLabel('Body').fill('{"order_id": "A-1", "cents": 900}');
    await page.getByRole('button', { name: /See its key/ }).click();
    await look(page, 'route');
    await page.goto(`${shop.ui}search?q=A-1`);
    await look(page, 'record');
    await page.goto(`${shop.ui}search?q=D-1`);
    await look(page, 'record-in-doubt');
    await page.goto(`${shop.ui}search?q=nothing`);
    await look(page, 'search');
    await page.goto(`${shop.ui}letters`);
    await page.getByRole('row', { name: /422/ }).getByRole('checkbox').check();
    await page.getByRole('button', { name: /Try out/ }).click();
    await page.getByText('would run').first().waitFor();
    await look(page, 'letters-dry-run');
    await page.goto(`${shop.ui}letters`);
    await page.getByRole('link', { name: /422/ }).click();
    await look(page, 'letters-group');
    const letter = page.locator('main a[href*="letters/"]').filter({ hasText: /[0-9a-f]{8}/ }).first();
    await letter.click();
    await look(page, 'letter');
    await shop.close();
    await running;
  } catch (error) {
    await shop.close();
    throw error;
  }
}

/** The page of a store that no gate holds: what a user of the library or of the Python package sees. */
export async function eachScreenOfAStore(page, look) {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'semel-browser-store-'));
  const store = `dir:${path.join(directory, 'store')}`;
  try {
    const shop = await openShop({ store });
    await liveALittle(shop);
    await shop.close();
    const port = await freePort();
    const ui = await start(['ui', '--store', store, '--listen', `127.0.0.1:${port}`], `http://127.0.0.1:${port}/ui/`);
    for (const name of ['overview', 'running', 'doubt', 'letters', 'audit']) {
      await page.goto(`http://127.0.0.1:${port}/ui/${name === 'overview' ? '' : name}`);
      await look(page, `store-${name}`);
    }
    await page.goto(`http://127.0.0.1:${port}/ui/doubt`);
    await page.getByRole('link', { name: /D-1/ }).click();
    await page.waitForURL(/records/);
    await look(page, 'store-record');
    await ui.stop();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const INVOICE = '{"type": "record", "name": "Invoice", "fields": [{"name": "order", "type": "string"}]}';

/** The local cloud, after a task, a message, a schema, and something that it does not serve. */
export async function eachScreenOfTheCloud(page, look) {
  const port = await freePort();
  const at = `http://127.0.0.1:${port}`;
  const broker = await start(['broker', '--listen', `127.0.0.1:${port}`, '--memory'], `${at}/_semel/history`);
  try {
    const parent = 'projects/demo/locations/local';
    await call(`${at}/v2/${parent}/queues`, { name: `${parent}/queues/orders` });
    const url = `http://127.0.0.1:${await freePort()}/charge`;
    await call(`${at}/v2/${parent}/queues/orders/tasks`, { task: { httpRequest: { url, body: 'eyJvcmRlciI6ICJBLTEifQ==' } } });
    await call(`${at}/v1/projects/demo/topics/invoices`, {}, 'PUT');
    await call(`${at}/v1/projects/demo/subscriptions/invoices-pull`, { topic: 'projects/demo/topics/invoices' }, 'PUT');
    await call(`${at}/v1/projects/demo/topics/invoices:publish`, { messages: [{ data: 'eyJvcmRlciI6ICJBLTIifQ==' }] });
    await call(`${at}/v1/projects/demo/schemas?schemaId=invoice`, { type: 'AVRO', definition: INVOICE });
    const schema = { schema: 'projects/demo/schemas/invoice', encoding: 'JSON' };
    await call(`${at}/v1/projects/demo/topics/checked`, { schemaSettings: schema }, 'PUT');
    const refused = await send(`${at}/v1/projects/demo/topics/secret`, { kmsKeyName: 'k' }, 'PUT');
    assert.equal(refused.status, 501);
    await page.goto(`${at}/ui/`);
    await look(page, 'cloud-overview');
    for (const name of ['orders', 'invoices', 'invoices-pull']) {
      await page.goto(`${at}/ui/`);
      await page.getByRole('link', { name, exact: true }).first().click();
      await look(page, `cloud-${name}`);
    }
    for (const name of ['faults', 'clock', 'schemas', 'refusals']) {
      const answer = await page.goto(`${at}/ui/${name}`);
      assert.equal(answer.status(), 200, name);
      await look(page, `cloud-${name}`);
    }
    await page.goto(`${at}/ui/schemas`);
    await page.getByText('projects/demo/schemas/invoice').first().waitFor();
    await page.goto(`${at}/ui/refusals`);
    await page.getByText('kms_key_name').first().waitFor();
  } finally {
    await broker.stop();
  }
}

function send(url, body, method) {
  return fetch(url, { method, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } });
}

async function call(url, body, method = 'POST') {
  const answer = await send(url, body, method);
  assert.ok(answer.ok, `${url}: ${answer.status} ${await answer.text()}`);
}
