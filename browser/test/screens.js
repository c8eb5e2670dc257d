// Every screen, with something on it: of a gate, of a store without a gate, of the local cloud.

import { strict as assert } from 'node:assert';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ACT_TOKEN, freePort, keptBack, liveALittle, openShop, start } from './shop.js';

/** Gives each screen of a gate in turn to `look(page, name)`. */
export async function eachScreenOfTheGate(page, look) {
  const shop = await openShop();
  try {
    await liveALittle(shop);
    shop.handler.answers.set('G-1', () => new Promise(() => {}));
    const running = shop.task('951', '/charge', { order_id: 'G-1' }).catch(() => {});
    for (const name of ['overview', 'running', 'doubt', 'letters', 'mismatches', 'routes', 'duplicates']) {
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
    await page.getByRole('link', { name: /^the handler's answer was 422/ }).click();
    await look(page, 'letters-group');
    const letter = page.locator('main a[href*="letters/"]').filter({ hasText: /[0-9a-f]{8}/ }).first();
    await letter.click();
    await look(page, 'letter');
    await page.goto(`${shop.ui}mismatches`);
    await page.getByRole('link', { name: /^compare/ }).click();
    await page.getByRole('heading', { name: 'Field by field' }).waitFor();
    await look(page, 'letter-mismatched');
    await redrive(page, shop, look);
    await page.goto(`${shop.ui}search?q=D-2`);
    await decide(page, 'It took effect', 'the bank shows the refund');
    await look(page, 'record-decided');
    await page.goto(`${shop.ui}audit`);
    await look(page, 'audit');
    await lookAtRefusal(page, `${shop.ui}records/v1_${'0'.repeat(64)}`);
    await look(page, 'refusal');
    await shop.close();
    await running;
  } catch (error) {
    await shop.close();
    throw error;
  }
}

/** A redrive, while it goes on. */
async function redrive(page, shop, look) {
  const handler = keptBack();
  for (const n of [1, 2, 3]) shop.handler.answers.set(`C-${n}`, handler.answer);
  await page.goto(`${shop.ui}letters`);
  await page.getByRole('row', { name: /422/ }).getByRole('checkbox').check();
  await page.getByRole('button', { name: /Try out/ }).click();
  const form = page.locator('form').filter({ has: page.getByRole('button', { name: 'Redrive these' }) });
  await form.getByLabel('Letters per second').fill('100');
  await form.getByLabel(/Reason/).fill('the currency table is fixed');
  await form.getByRole('button').click();
  await page.getByRole('progressbar').waitFor();
  await look(page, 'job');
  handler.letGo();
  await page.locator('.state', { hasText: 'done' }).waitFor();
}

/** Says what became of the record that is open. */
export async function decide(page, verdict, why) {
  const decision = page.getByRole('region', { name: 'What became of it?' });
  await decision.getByRole('radio', { name: new RegExp(`^${verdict}`) }).check();
  await decision.getByLabel(/Reason/).fill(why);
  await decision.getByRole('button').click();
  await page.getByText('It is in the audit.').waitFor();
}

/** Opens what is refused; the browser complains of every status of that kind. */
async function lookAtRefusal(page, url) {
  const answer = await page.goto(url);
  assert.equal(answer.status(), 404);
  page.complaints = page.complaints.filter((it) => !it.includes('status of 404'));
}

/** The page before anybody has signed in, and who acts then. */
export async function eachScreenOfSigningIn(page, look) {
  const shop = await openShop({ tokens: true });
  try {
    await page.goto(`${shop.ui}letters`);
    await look(page, 'sign-in');
    await page.getByLabel('Token').fill(ACT_TOKEN);
    await page.getByLabel(/name/).fill('Ada');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText(/Signed in: Ada \(act from/).waitFor();
  } finally {
    await shop.close();
  }
}

/** The page of a store that no gate holds: what a user of the library or of the Python package sees. */
export async function eachScreenOfAStore(page, look) {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'semel-browser-store-'));
  const store = `dir:${path.join(directory, 'store')}`;
  try {
    const shop = await openShop({ store });
    await liveALittle(shop);
    // A run that nobody ends any more.
    const begun = new Promise((resolve) => shop.handler.answers.set('G-1', () => { resolve(); return new Promise(() => {}); }));
    const lost = shop.task('951', '/charge', { order_id: 'G-1' }).catch(() => {});
    await begun;
    await shop.crash();
    await lost;
    await shop.close();
    const port = await freePort();
    const ui = await start(['ui', '--store', store, '--listen', `127.0.0.1:${port}`], `http://127.0.0.1:${port}/ui/`);
    const open = (name) => page.goto(`http://127.0.0.1:${port}/ui/${name === 'overview' ? '' : name}`);
    await stuck(open, page);
    await look(page, 'store-running');
    for (const name of ['overview', 'doubt', 'letters']) {
      await open(name);
      await look(page, `store-${name}`);
    }
    await open('doubt');
    await page.getByRole('link', { name: /D-1/ }).click();
    await page.waitForURL(/records/);
    await look(page, 'store-record');
    await decide(page, 'It did not take effect, and shall not', 'the customer has cancelled');
    await open('audit');
    await look(page, 'store-audit');
    await ui.stop();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Looks until the run that was lost has lost its lease, too. */
async function stuck(open, page) {
  const deadline = Date.now() + 10_000;
  do {
    await open('running');
    if (await page.locator('.state', { hasText: 'stuck' }).count() > 0) return;
  } while (Date.now() < deadline);
  assert.fail('no run is shown as stuck');
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
    await page.goto(`${at}/ui/`);
    await page.locator('#latest').getByRole('link', { name: /\d{6}/ }).first().click();
    await page.getByRole('heading', { name: /^Task/ }).waitFor();
    await look(page, 'cloud-task');
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
