// Every screen, light and dark, at a desk and on a phone: it loads, fits its window, and axe-core finds nothing serious.

import { strict as assert } from 'node:assert';
import { after, before, test } from 'node:test';
import { fitsItsWindow, isAccessible, openBrowser } from './chromium.js';
import { eachScreenOfAStore, eachScreenOfSigningIn, eachScreenOfTheCloud, eachScreenOfTheGate } from './screens.js';

const LOOKS = [
  ['light, at a desk', { colorScheme: 'light' }],
  ['dark, on a phone', { colorScheme: 'dark', viewport: { width: 390, height: 800 } }],
];

let browser;
before(async () => { browser = await openBrowser(); });
after(async () => { await browser?.close(); });

async function isFine(page, name) {
  await page.locator('h1').first().waitFor();
  await fitsItsWindow(page);
  await isAccessible(page);
  assert.deepEqual(page.complaints, [], name);
}

for (const [name, options] of LOOKS) {
  test(`every screen of the gate, ${name}`, async () => eachScreenOfTheGate(await browser.page(options), isFine));
  test(`signing in, ${name}`, async () => eachScreenOfSigningIn(await browser.page(options), isFine));
  test(`every screen of a store without a gate, ${name}`, async () => eachScreenOfAStore(await browser.page(options), isFine));
  test(`every screen of the local cloud, ${name}`, async () => eachScreenOfTheCloud(await browser.page(options), isFine));
}
