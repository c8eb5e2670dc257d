// Debian's Chromium, headless, and what is asked of every page.

import { strict as assert } from 'node:assert';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { chromium } from 'playwright-core';

const PROGRAM = '/usr/bin/chromium';
const FLAGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
];
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A browser of the tests' own; call `close` at the end. */
export async function openBrowser() {
  assert.ok(existsSync(PROGRAM), 'Chromium is missing: apt-get install chromium, or cargo xtask test --only install');
  const home = mkdtempSync(path.join(os.tmpdir(), 'semel-chromium-'));
  const browser = await chromium.launch({ executablePath: PROGRAM, headless: true, args: FLAGS, env: { ...process.env, HOME: home } });
  return {
    /** A page that notes what a strict Content-Security-Policy or a script complains of. */
    async page(options = {}) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce', ...options });
      const page = await context.newPage();
      page.setDefaultTimeout(10_000);
      page.complaints = [];
      page.on('console', (message) => { if (message.type() === 'error') page.complaints.push(message.text()); });
      page.on('pageerror', (error) => page.complaints.push(String(error)));
      return page;
    },
    async close() {
      await browser.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** No serious finding of axe-core. It comes in through the debugger, which the page's own policy does not bind. */
export async function isAccessible(page) {
  const debug = await page.context().newCDPSession(page);
  await debug.send('Runtime.evaluate', { expression: AXE });
  await debug.detach();
  const findings = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run();
    return violations.filter(({ impact }) => ['serious', 'critical'].includes(impact))
      .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html}\n    ${failureSummary}`).join('\n  ')}`);
  });
  assert.deepEqual(findings, [], `axe-core on ${page.url()}`);
}

/** Nothing sticks out of the window sideways: tables scroll within themselves. */
export async function fitsItsWindow(page) {
  const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(wide <= window, `${page.url()} is ${wide} px wide in a window of ${window} px`);
}
