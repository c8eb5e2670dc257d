// The page as a person uses it: one shop, one browser, the questions that people come with.

import { strict as assert } from 'node:assert';
import { after, before, test } from 'node:test';
import { fitsItsWindow, isAccessible, openBrowser } from './chromium.js';
import { decide } from './screens.js';
import { ACT_TOKEN, VIEW_TOKEN, atFirst, behindPrefix, failing, keptBack, liveALittle, openShop } from './shop.js';

let shop;
let browser;

before(async () => {
  [shop, browser] = await Promise.all([openShop(), openBrowser()]);
  await liveALittle(shop);
});

after(async () => {
  await browser?.close();
  await shop?.close();
});

/** Types into the one search box and presses Enter. */
async function search(page, text) {
  await page.getByRole('searchbox').fill(text);
  await page.getByRole('searchbox').press('Enter');
  await page.waitForURL((url) => !url.pathname.endsWith('/ui/'));
}

async function open(screen = '', options) {
  const page = await browser.page(options);
  await page.goto(shop.ui + screen);
  return page;
}

test('the overview says what did not happen twice', async () => {
  const page = await open();
  await page.getByText('effects not repeated').waitFor();
  await isAccessible(page);
  assert.deepEqual(page.complaints, []);
});

test('an order is found, and its record answers in a sentence', async () => {
  const page = await open();
  await search(page, 'A-1');
  assert.match(page.url(), /\/ui\/records\/v1_[0-9a-f]{64}$/);
  const lead = page.locator('main .lead').filter({ hasText: 'took effect' });
  assert.equal((await lead.innerText()).replace(/\s+/g, ' ').trim(), 'Delivered 3 times at this gate, run twice, took effect once.');
  const timeline = page.locator('.timeline');
  assert.match(await timeline.innerText(), /503/);
  assert.match(await timeline.innerText(), /gate-7/);
  // The stored answer, to the last digit.
  assert.match(await page.locator('main').innerText(), /90000000000000001/);
  await isAccessible(page);
  assert.deepEqual(page.complaints, []);
});

test('a task, a trace and a key lead to the same record', async () => {
  const page = await open();
  await search(page, 'A-1');
  const record = page.url();
  for (const text of ['8842', '7c1e0a2b3c4d5e6f708192a3b4c5d6e7', record.split('/').at(-1)]) {
    await page.goto(shop.ui);
    await search(page, text);
    assert.equal(page.url(), record, text);
  }
});

test('nonsense is answered kindly', async () => {
  const page = await open();
  await search(page, '<b>no such order</b>');
  assert.match(await page.locator('main').innerText(), /<b>no such order<\/b>/);
  assert.equal(await page.locator('main b', { hasText: 'no such order' }).count(), 0);
  await isAccessible(page);
});

/** The list of letters, once it has those that failed at the handler. */
async function openLetters() {
  const page = await open('letters');
  const failed = page.getByRole('row', { name: /422/ });
  while (await failed.count() === 0) await page.reload();
  return page;
}

/** Tries out a redrive of those that failed at the handler; the form that then does it. */
async function tryOut(page) {
  await page.getByRole('row', { name: /422/ }).getByRole('checkbox').check();
  await page.getByRole('button', { name: /Try out/ }).click();
  await page.getByText('would run').first().waitFor();
  return page.locator('form').filter({ has: page.getByRole('button', { name: 'Redrive these' }) });
}

async function discard(page, why) {
  const form = page.locator('form').filter({ has: page.getByRole('button', { name: /^Discard/ }) });
  await form.getByLabel(/Reason/).fill(why);
  await form.getByRole('button').click();
}

test('trying out nothing is said where one can choose', async () => {
  const page = await open('letters');
  await page.getByRole('button', { name: /Try out/ }).click();
  await page.getByRole('alert').getByText('Nothing was chosen').waitFor();
  await page.getByLabel('all of these').check();
  assert.equal(await page.locator('input[name=group]:not(:checked)').count(), 0);
});

test('a group of letters is tried out, then redriven', async () => {
  for (const n of [1, 2, 3]) shop.handler.answers.delete(`C-${n}`);
  const page = await open('letters');
  const redrive = await tryOut(page);
  assert.equal(shop.handler.effects.has('C-1'), false, 'a dry run runs nothing');
  await redrive.getByLabel('Letters per second').fill('100');
  await redrive.getByLabel(/Reason/).fill('the currency table is fixed');
  await redrive.getByRole('button').click();
  await page.locator('.state', { hasText: 'done' }).waitFor();
  for (const n of [1, 2, 3]) assert.equal(shop.handler.effects.get(`C-${n}`), 1);
  await page.goto(`${shop.ui}letters`);
  assert.equal(await page.getByRole('row', { name: /422/ }).count(), 0);
  await page.goto(`${shop.ui}audit`);
  assert.match(await page.locator('main').innerText(), /the currency table is fixed/);
});

test('the progress of a redrive is seen while it goes on', async () => {
  for (const n of [1, 2, 3]) {
    shop.handler.answers.set(`P-${n}`, failing(422, 'unknown currency'));
    await shop.task(`96${n}`, '/charge', { order_id: `P-${n}` });
  }
  const handler = keptBack();
  for (const n of [1, 2, 3]) shop.handler.answers.set(`P-${n}`, handler.answer);
  const page = await openLetters();
  const redrive = await tryOut(page);
  await redrive.getByLabel('Letters per second').fill('100');
  await redrive.getByLabel(/Reason/).fill('the currency table is fixed again');
  await redrive.getByRole('button').click();
  await page.locator('progress[value="0"][max="3"]').waitFor();
  await isAccessible(page);
  handler.letGo(1);
  await page.locator('progress[value="1"]').waitFor();
  handler.letGo();
  await page.locator('.state', { hasText: 'done' }).waitFor();
  assert.match(await page.locator('main').innerText(), /3 of 3 letters/);
  for (const n of [1, 2, 3]) assert.equal(shop.handler.effects.get(`P-${n}`), 1);
  assert.deepEqual(page.complaints, []);
});

test('a letter that is of no use is discarded', async () => {
  const page = await open('mismatches');
  await page.getByRole('link', { name: /^compare/ }).first().click();
  await page.getByRole('heading', { name: 'Field by field' }).waitFor();
  await discard(page, 'it was a test');
  await page.waitForURL(/\/ui\/letters$/);
  assert.equal(await page.getByRole('row', { name: /mismatched/ }).count(), 0);
  await page.goto(`${shop.ui}audit`);
  assert.match(await page.getByRole('row', { name: /discard/ }).first().innerText(), /it was a test/);
});

test('one in doubt is decided by a person, with a reason', async () => {
  const page = await open('doubt');
  await page.getByRole('link', { name: /D-1/ }).click();
  await page.waitForURL(/records/);
  const decision = page.getByRole('region', { name: 'What became of it?' });
  assert.ok((await decision.boundingBox()).y < 300, 'the decision is what the page begins with');
  await isAccessible(page);
  await decide(page, 'It took effect', 'the bank shows the refund');
  await page.locator('h1 .state', { hasText: 'succeeded' }).waitFor();
  const again = await shop.task('931', '/refund', { order_id: 'D-1' }, { attempt: 2 });
  assert.equal(again.status, 200);
  assert.equal(shop.handler.effects.has('D-1'), false, 'nothing ran again');
});

/** A page whose time passes only when told: nothing is fetched anew in between. */
async function openWithClock(options) {
  const page = await browser.page(options);
  await page.clock.install();
  await page.goto(shop.ui);
  await page.getByRole('button', { name: 'Pause' }).waitFor();
  return page;
}

/** One refresh, which shows an order that was delivered just before. */
async function refresh(page, order) {
  await shop.task(order, '/charge', { order_id: order });
  const fetched = page.waitForResponse(/\/ui\/live$/);
  await page.clock.runFor(3000);
  await fetched;
}

test('what is live does not get into its reader\'s way', async () => {
  const page = await openWithClock({ viewport: { width: 390, height: 800 } });
  const latest = page.getByRole('region', { name: /latest deliveries/ });
  await refresh(page, 'L-1');
  await latest.getByRole('link', { name: 'order_id L-1' }).waitFor();

  // Scrolled sideways: the rows change, the table stays where it is.
  const scrolled = () => latest.evaluate((it) => it.scrollLeft);
  await latest.evaluate((it) => { it.scrollLeft = 120; });
  await refresh(page, 'L-2');
  await latest.getByRole('link', { name: 'order_id L-2' }).waitFor();
  assert.equal(await scrolled(), 120);

  // A link that has the focus stays, and so do its neighbours; the numbers go on.
  const row = latest.getByRole('link', { name: 'order_id L-2' });
  await latest.focus();
  await page.keyboard.press('Tab');
  await row.evaluate((it) => { if (it !== document.activeElement) throw new Error('Tab leads elsewhere'); });
  const before = [await page.locator('#now-says').innerText(), await scrolled()];
  await refresh(page, 'L-3');
  await page.waitForFunction((was) => document.querySelector('#now-says').innerText !== was, before[0]);
  await row.evaluate((it) => { if (it !== document.activeElement) throw new Error('the focus is lost'); });
  assert.equal(await scrolled(), before[1]);
  assert.equal(await latest.getByRole('link', { name: 'order_id L-3' }).count(), 0);
  await page.keyboard.press('Shift+Tab');
  await refresh(page, 'L-4');
  await latest.getByRole('link', { name: 'order_id L-3' }).waitFor();
  assert.deepEqual(page.complaints, []);
});

test('whoever wants to read in peace pauses it, by the keyboard', async () => {
  const page = await openWithClock();
  let fetched = 0;
  page.on('request', (request) => { fetched += request.url().endsWith('/ui/live') ? 1 : 0; });
  const pause = page.getByRole('button', { name: 'Pause' });
  await pause.press('Enter');
  await page.getByText('Paused').waitFor();
  await isAccessible(page);
  await page.clock.runFor(30_000);
  assert.equal(fetched, 0);
  await pause.click();
  await refresh(page, 'L-5');
  assert.equal(fetched, 1);
});

test('it works without JavaScript', async () => {
  const page = await open('', { javaScriptEnabled: false });
  await search(page, 'A-1');
  assert.match(await page.locator('main').innerText(), /took effect once/);
});

test('it works behind a path prefix, at the width of a phone', async () => {
  const proxy = await behindPrefix(shop.admin, '/tools/semel');
  try {
    const page = await browser.page({ viewport: { width: 390, height: 800 } });
    await page.goto(proxy.url);
    await fitsItsWindow(page);
    // What became of a delivery is seen without scrolling, and the words of the picture can be read.
    for (const became of await page.locator('#now-latest .state').all()) {
      const { x, width } = await became.boundingBox();
      assert.ok(x + width <= 376, `${await became.innerText()} ends at ${x + width} px`);
    }
    for (const word of await page.locator('.plot text, .scale span').all()) assert.ok((await word.boundingBox()).height >= 11);
    await search(page, 'A-1');
    assert.match(page.url(), /\/tools\/semel\/ui\/records\//);
    await fitsItsWindow(page);
    await page.getByRole('link', { name: /^Letters/ }).first().click();
    await page.waitForURL(/\/tools\/semel\/ui\/letters/);
    await fitsItsWindow(page);
    // An act leads back to where it was done.
    await page.goto(`${proxy.url}doubt`);
    await page.getByRole('link', { name: /D-2/ }).click();
    await decide(page, 'It did not take effect, and shall not', 'the customer has cancelled');
    assert.match(page.url(), /\/tools\/semel\/ui\/records\/v1_[0-9a-f]{64}\?done=1$/);
    await fitsItsWindow(page);
    assert.deepEqual(page.complaints, []);
  } finally {
    proxy.close();
  }
});

test('whoever shows a wrong token stays outside, and whoever may look cannot act', async () => {
  const guarded = await openShop({ tokens: true });
  try {
    guarded.handler.answers.set('F-1', atFirst(1, failing(422, 'no')));
    await guarded.task('1', '/charge', { order_id: 'F-1' });
    const page = await browser.page();
    await page.goto(`${guarded.ui}letters`);
    const signIn = async (token) => {
      await page.getByLabel(/token/i).fill(token);
      await page.getByRole('button', { name: /sign in/i }).click();
      await page.waitForLoadState();
    };
    await isAccessible(page);
    await signIn('wrong');
    assert.equal(await page.getByRole('row', { name: /422/ }).count(), 0);
    await page.getByRole('alert').waitFor();
    await signIn(VIEW_TOKEN);
    await page.goto(`${guarded.ui}letters`);
    await page.getByRole('row', { name: /422/ }).waitFor();
    assert.equal(await page.getByRole('button', { name: /Redrive|Discard/ }).count(), 0);
    const [cookie] = await page.context().cookies();
    assert.equal(cookie.httpOnly, true);
    assert.equal(cookie.sameSite, 'Strict');
    assert.ok(!cookie.value.includes(VIEW_TOKEN) && !cookie.value.includes(ACT_TOKEN));
    await page.getByRole('button', { name: /sign out/i }).click();
    await page.getByLabel(/token/i).waitFor();
    await page.getByLabel(/name/).fill('Ada');
    await signIn(ACT_TOKEN);
    await page.goto(`${guarded.ui}letters`);
    await page.getByRole('row', { name: /422/ }).getByRole('checkbox').check();
    await page.getByRole('button', { name: /Try out/ }).click();
    await page.getByRole('button', { name: 'Redrive these' }).waitFor();
    // Who says a name acts under it.
    await discard(page, 'it was a test');
    await page.locator('.state', { hasText: 'done' }).waitFor();
    await page.goto(`${guarded.ui}audit`);
    assert.match(await page.getByRole('row', { name: /discard/ }).first().innerText(), /Ada \(act from 127\.0\.0\.1\)/);
  } finally {
    await guarded.close();
  }
});
