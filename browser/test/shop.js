// A shop to look at: a handler, a gate before it, and deliveries that went well, badly and in between.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const START_MS_MAX = 20_000;
const POLL_MS = 20;

export const ACT_TOKEN = 'act-7f3c';
export const VIEW_TOKEN = 'view-19ab';

/** The program under test: `SEMEL_BIN`. */
const SEMEL = process.env.SEMEL_BIN ?? fail('SEMEL_BIN is not set: run `cargo xtask test --only browser`');

/** Starts a shop. With `tokens`, its page asks whom it shows itself to. Call `close` at the end. */
export async function openShop({ tokens = false, routes = ROUTES, store } = {}) {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'semel-browser-'));
  const handler = await startHandler();
  const [gate, admin] = [await freePort(), await freePort()];
  const config = path.join(directory, 'semel.toml');
  writeFileSync(path.join(directory, 'label-key'), 'a secret of at least thirty-two bytes, for tests alone');
  writeFileSync(config, [
    `name = "gate-7"`,
    `namespace = "shop"`,
    `label_key = "file:${path.join(directory, 'label-key')}"`,
    `listen = "127.0.0.1:${gate}"`,
    `admin = "127.0.0.1:${admin}"`,
    tokens ? `admin_token = "${ACT_TOKEN}"\nadmin_view_token = "${VIEW_TOKEN}"` : '',
    `store = "${store ?? `dir:${path.join(directory, 'store')}`}"`,
    `upstream = "${handler.url}"`,
    routes,
  ].join('\n'));
  const program = await start(['gate', '--config', config], `http://127.0.0.1:${admin}/readyz`);
  const shop = {
    handler,
    gate: `http://127.0.0.1:${gate}`,
    admin: `http://127.0.0.1:${admin}`,
    ui: `http://127.0.0.1:${admin}/ui/`,
    config,
    /** The gate is gone without a word; who looks at its store finds what it left. */
    crash: () => program.stop('SIGKILL'),
    task: (name, path, body, headers) => deliverTask(`http://127.0.0.1:${gate}${path}`, name, body, headers),
    async close() {
      await program.stop();
      handler.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
  return shop;
}

const ROUTES = `
[[route]]
name = "charge"
path = "/charge"
source = "cloud-tasks"
key = "/order_id"
final = [422]
lease = "1s"
keep_payload = true
show_bodies = true

[[route]]
name = "refund"
path = "/refund"
source = "cloud-tasks"
key = "/order_id"
in_doubt = "park"
timeout = "2s"

[[route]]
name = "orders"
path = "/orders"
source = "api"
caller = "header:x-client-id"

[[route]]
name = "customers"
path = "/customers"
source = "cloud-tasks"
key = "/email"
private = true
`;

/** A handler whose answers a test decides: `handler.answers` maps an order to a function of the request. */
async function startHandler() {
  const effects = new Map();
  const answers = new Map();
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const order = orderOf(text);
    const answer = answers.get(order);
    if (answer && (await answer(response)) !== 'go on') return;
    effects.set(order, (effects.get(order) ?? 0) + 1);
    response.writeHead(201, { 'content-type': 'application/json' });
    // An integer above 2^53 must be shown as it came.
    response.end(`{"receipt": "rc_${order}", "cents": 90000000000000001}`);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    effects,
    answers,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function orderOf(text) {
  try {
    const { order_id, email } = JSON.parse(text);
    return order_id ?? email ?? text;
  } catch {
    return text;
  }
}

/** Answers of the handler, by what became of the work. */
export const failing = (status, text) => (response) => {
  response.writeHead(status, { 'content-type': 'text/plain' });
  response.end(text);
};
/** Answers that are kept back until `letGo()`; `letGo(1)` lets a single one go. */
export function keptBack() {
  const waiting = [];
  let free = 0;
  return {
    answer: async () => {
      if (free > 0) free -= 1;
      else await new Promise((resolve) => waiting.push(resolve));
      return 'go on';
    },
    letGo(many = Infinity) {
      const going = waiting.splice(0, many);
      free += many - going.length;
      going.forEach((go) => go());
    },
  };
}
export const hangingUp = () => (response) => response.destroy();
/** The first `times` answers are these, then all is well. */
export const atFirst = (times, answer) => (response) => (times-- > 0 ? answer(response) : 'go on');

/** Delivers as Cloud Tasks does; `attempt` counts from 1. */
export async function deliverTask(url, name, body, { attempt = 1, traceparent } = {}) {
  const headers = {
    'content-type': 'application/json',
    'x-cloudtasks-queuename': 'orders',
    'x-cloudtasks-taskname': name,
    'x-cloudtasks-taskretrycount': String(attempt - 1),
    'x-cloudtasks-taskexecutioncount': String(attempt - 1),
    'x-cloudtasks-tasketa': '1700000000',
    'user-agent': 'Google-Cloud-Tasks',
    ...(traceparent ? { traceparent } : {}),
  };
  const answer = await fetch(url, { method: 'POST', headers, body: typeof body === 'string' ? body : JSON.stringify(body) });
  return { status: answer.status, key: answer.headers.get('semel-key'), text: await answer.text() };
}

/** Days of a shop in seconds: something for every screen to show. */
export async function liveALittle(shop) {
  const { task, handler } = shop;
  const trace = '00-7c1e0a2b3c4d5e6f708192a3b4c5d6e7-0102030405060708-01';
  handler.answers.set('A-1', atFirst(1, failing(503, 'the bank is closed')));
  await task('8842', '/charge', { order_id: 'A-1', cents: 900 }, { traceparent: trace });
  await task('8842', '/charge', { order_id: 'A-1', cents: 900 }, { attempt: 2, traceparent: trace });
  await task('8842', '/charge', { order_id: 'A-1', cents: 900 }, { attempt: 3, traceparent: trace });
  for (const n of [2, 3, 4, 5]) await task(`90${n}`, '/charge', { order_id: `A-${n}`, cents: n });
  // The same key, other work.
  await task('9102', '/charge', { order_id: 'A-2', cents: 7 });
  // No key.
  for (const n of [1, 2, 3]) await task(`91${n}`, '/charge', { ordr_id: `B-${n}` });
  // Refused for good, until the handler is fixed.
  for (const n of [1, 2, 3]) {
    handler.answers.set(`C-${n}`, failing(422, 'unknown currency'));
    await task(`92${n}`, '/charge', { order_id: `C-${n}`, currency: 'XXX' });
  }
  // In doubt: the handler hangs up after it was asked.
  for (const n of [1, 2]) {
    handler.answers.set(`D-${n}`, hangingUp());
    await task(`93${n}`, '/refund', { order_id: `D-${n}` });
  }
  // An impatient client.
  for (let i = 0; i < 3; i += 1) {
    await fetch(`${shop.gate}/orders`, {
      method: 'POST',
      headers: { 'idempotency-key': 'key-1', 'x-client-id': 'mobile-2', 'content-type': 'application/json' },
      body: '{"order_id": "E-1"}',
    });
  }
  await task('941', '/customers', { email: 'ada@example.org' });
}

/** A reverse proxy that serves a page below a path prefix. */
export async function behindPrefix(admin, prefix) {
  const target = new URL(admin);
  const server = http.createServer((request, response) => {
    if (!request.url.startsWith(`${prefix}/`)) {
      response.writeHead(404).end('not behind the prefix');
      return;
    }
    const options = { host: target.hostname, port: target.port, method: request.method, path: request.url.slice(prefix.length), headers: request.headers };
    request.pipe(http.request(options, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    }).on('error', () => response.destroy()));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}${prefix}/ui/`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Starts `semel …` and waits until `ready` answers 200. */
export async function start(words, ready) {
  const program = spawn(SEMEL, words, { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const stream of [program.stdout, program.stderr]) stream.on('data', (chunk) => { said = (said + chunk).slice(-20_000); });
  const ended = new Promise((resolve) => program.on('exit', resolve));
  const deadline = Date.now() + START_MS_MAX;
  for (;;) {
    if (program.exitCode !== null) fail(`semel ${words.join(' ')} ended at its start:\n${said}`);
    if (await answers(ready)) break;
    if (Date.now() > deadline) fail(`semel ${words.join(' ')} is not ready after ${START_MS_MAX} ms:\n${said}`);
    await sleep(POLL_MS);
  }
  return {
    said: () => said,
    async stop(signal = 'SIGTERM') {
      program.kill(signal);
      await ended;
    },
  };
}

async function answers(url) {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false;
  }
}

export function freePort() {
  return new Promise((resolve) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

function fail(why) {
  throw new Error(why);
}
