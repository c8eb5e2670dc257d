// What the client programs share: a handler that answers as told and remembers what came, and checks that speak.
import assert from 'node:assert/strict';
import http from 'node:http';

// No wait for a delivery is longer.
const PATIENCE_MS = 30_000;

// Serves on a free port of the loopback interface.
export class Handler {
  #answers = new Map();
  #seen = new Map();
  #waiting = new Set();

  static async start() {
    const handler = new Handler();
    handler.server = http.createServer((request, response) => handler.#take(request, response));
    await new Promise(done => handler.server.listen(0, '127.0.0.1', done));
    handler.root = `http://127.0.0.1:${handler.server.address().port}`;
    return handler;
  }

  // A URL that answers with these statuses, one after the other; with the last one again and again.
  answering(path, ...statuses) {
    this.#answers.set(path, statuses.length ? statuses : [200]);
    return this.root + path;
  }

  // Waits until so many requests have come, and gives all of them.
  async requests(path, count = 1) {
    const came = () => this.seen(path).length >= count;
    if (!came()) {
      await within(`${count} requests to ${path}`, done => {
        this.#waiting.add(() => came() && done());
      });
    }
    return this.seen(path);
  }

  seen(path) {
    return this.#seen.get(path) ?? [];
  }

  end() {
    this.server.close();
    this.server.closeAllConnections();
  }

  async #take(request, response) {
    const chunks = await request.toArray();
    const { method, url, headers } = request;
    const path = url.split('?')[0];
    this.#seen.set(path, [...this.seen(path), { method, url, headers, body: Buffer.concat(chunks) }]);
    this.#waiting.forEach(look => look());
    const statuses = this.#answers.get(path) ?? [404];
    response.writeHead(statuses.length > 1 ? statuses.shift() : statuses[0]).end();
  }
}

// Says what was seen, or stops the program.
export function check(what, seen, expected) {
  assert.deepEqual(seen, expected, `${what}: saw ${JSON.stringify(seen)}, not ${JSON.stringify(expected)}`);
  console.log(`ok: ${what}`);
}

// The call must be refused with this code, and with these words.
export async function refused(what, code, words, call) {
  const error = await call.then(
    () => assert.fail(`${what}: not refused`),
    error => error,
  );
  assert.equal(error.code, code, `${what}: ${error}`);
  assert.ok(error.message.includes(words), `${what}: refused with ${error.message}, not ${words}`);
  console.log(`ok: ${what} is refused: ${code}`);
}

// What `begin` promises by calling `done`, within a bound.
export function within(what, begin) {
  return new Promise((done, fail) => {
    const late = setTimeout(() => fail(new Error(`${what}: not within ${PATIENCE_MS} ms`)), PATIENCE_MS);
    begin(result => {
      clearTimeout(late);
      done(result);
    });
  });
}

// Asks again and again, because nobody tells us.
export async function until(what, asked) {
  const end = Date.now() + PATIENCE_MS;
  while (Date.now() < end) {
    if (await asked()) return;
    await new Promise(again => setTimeout(again, 20));
  }
  assert.fail(`${what}: not within ${PATIENCE_MS} ms`);
}
