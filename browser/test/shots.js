// The pictures of docs/ui.md: one of each screen, and the two that people open first in the dark and on a phone.

import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { openBrowser } from './chromium.js';
import { eachScreenOfAStore, eachScreenOfSigningIn, eachScreenOfTheCloud, eachScreenOfTheGate } from './screens.js';

const directory = process.env.SEMEL_SHOTS;
mkdirSync(directory, { recursive: true });
const browser = await openBrowser();
const taking = (suffix, only) => async (page, name) => {
  if (only && !only.includes(name)) return;
  await page.locator('h1').first().waitFor();
  // What scrolls along must not stand in the middle.
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: path.join(directory, `${name}${suffix}.png`), fullPage: true });
};
try {
  const desk = { viewport: { width: 1280, height: 760 } };
  for (const each of [eachScreenOfTheGate, eachScreenOfSigningIn, eachScreenOfAStore, eachScreenOfTheCloud]) await each(await browser.page(desk), taking(''));
  await eachScreenOfTheGate(await browser.page({ ...desk, colorScheme: 'dark' }), taking('-dark', ['overview', 'record']));
  await eachScreenOfTheGate(await browser.page({ viewport: { width: 390, height: 800 } }), taking('-phone', ['overview', 'record']));
} finally {
  await browser.close();
}
