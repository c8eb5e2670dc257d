// Webhooks signed by GitHub's own package: `node webhooks.mjs http://HOST:PORT`. The gate there has the route /github,
// and knows the secrets NEW_SECRET and OLD_SECRET.
import assert from 'node:assert/strict';
import { sign, verify } from '@octokit/webhooks-methods';

const [, , gate] = process.argv;
const { NEW_SECRET, OLD_SECRET } = process.env;

// Sends a body with a signature, and gives the status.
async function post(delivery, body, signature) {
  const headers = {
    'content-type': 'application/json',
    'x-github-event': 'push',
    'x-github-delivery': delivery,
    'x-hub-signature-256': signature,
  };
  const answer = await fetch(`${gate}/github`, { method: 'POST', headers, body });
  await answer.arrayBuffer();
  return answer.status;
}

async function check(what, status, wanted) {
  assert.equal(await status, wanted, what);
  console.log(`ok: github: ${what}`);
}

const body = JSON.stringify({ sender: 'github', id: 'evt_github_1', sum: '9 €' });
const other = JSON.stringify({ sender: 'github', id: 'evt_github_2' });
const signature = await sign(NEW_SECRET, body);
assert(await verify(NEW_SECRET, body, signature));
await check('a forged body', post('d-1', body.replace('github', 'mallory'), signature), 401);
await check('another secret', post('d-1', body, await sign('not the secret', body)), 401);
await check('the event', post('d-1', body, signature), 200);
await check('the event again', post('d-1', body, signature), 200);
await check('the secret that is being replaced', post('d-2', other, await sign(OLD_SECRET, other)), 200);
