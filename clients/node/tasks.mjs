// Cloud Tasks with Google's Node client: `node tasks.mjs HOST:PORT grpc|rest`.
import { CloudTasksClient } from '@google-cloud/tasks';
import { PassThroughClient } from 'google-auth-library';
import { grpc } from 'google-gax';
import { Handler, check, refused, until } from './handler.mjs';

const [, , broker, transport] = process.argv;
const LOCATION = 'projects/shop/locations/here';
// Retries come quickly, so that nobody waits.
const QUICK = { minBackoff: { nanos: 20_000_000 }, maxBackoff: { nanos: 50_000_000 } };
// What each transport calls an error.
const CODES = {
  grpc: { invalid: 3, missing: 5, exists: 6 },
  rest: { invalid: 400, missing: 404, exists: 409 },
}[transport];

const client = connect();
const handler = await Handler.start();

function connect() {
  const [apiEndpoint, port] = broker.split(':');
  const common = { apiEndpoint, port: Number(port), projectId: 'shop' };
  if (transport === 'rest') {
    return new CloudTasksClient({ ...common, fallback: true, protocol: 'http', authClient: new PassThroughClient() });
  }
  return new CloudTasksClient({ ...common, sslCreds: grpc.credentials.createInsecure() });
}

async function newQueue(short, fields = {}) {
  const queue = { name: `${LOCATION}/queues/${short}`, retryConfig: QUICK, ...fields };
  const [created] = await client.createQueue({ parent: LOCATION, queue });
  return created.name;
}

async function newTask(parent, url, { id, request = {}, ...fields } = {}) {
  const task = { httpRequest: { url, ...request }, ...fields };
  if (id) task.name = `${parent}/tasks/${id}`;
  const [created] = await client.createTask({ parent, task });
  return created.name;
}

function gone(name) {
  return until(`end of ${name}`, () =>
    client.getTask({ name }).then(
      () => false,
      error => error.code === CODES.missing,
    ),
  );
}

async function queues() {
  const name = await newQueue('orders', { rateLimits: { maxDispatchesPerSecond: 333 } });
  const [got] = await client.getQueue({ name });
  check('a queue is created and got', [got.name, got.state, got.rateLimits.maxBurstSize], [name, 'RUNNING', 66]);
  await refused('the same queue again', CODES.exists, 'Queue already exists', newQueue('orders'));
  const [changed] = await client.updateQueue({
    queue: { name, rateLimits: { maxDispatchesPerSecond: 7, maxConcurrentDispatches: 3 } },
    updateMask: { paths: ['rate_limits.max_dispatches_per_second'] },
  });
  const { maxDispatchesPerSecond, maxConcurrentDispatches } = changed.rateLimits;
  check('the mask says what an update changes', [maxDispatchesPerSecond, maxConcurrentDispatches], [7, 1000]);
  for (const number of [0, 1, 2]) await newQueue(`page-${number}`);
  const names = [];
  for await (const queue of client.listQueuesAsync({ parent: LOCATION, pageSize: 2 })) {
    names.push(queue.name.split('/').at(-1));
  }
  check('every queue is listed once', names.sort(), ['orders', 'page-0', 'page-1', 'page-2']);
}

async function deliver() {
  const queue = await newQueue('deliver');
  const url = handler.answering('/deliver');
  const headers = { 'X-Order': 'A-1', 'Content-Type': 'text/plain' };
  const body = Buffer.from([0, 255, 65]);
  const name = await newTask(queue, url, { id: 'first', request: { httpMethod: 'PUT', headers, body } });
  const [seen] = await handler.requests('/deliver');
  check('method and body', [seen.method, seen.body.equals(body)], ['PUT', true]);
  check('own headers', [seen.headers['x-order'], seen.headers['content-type']], ['A-1', 'text/plain']);
  check('user agent', seen.headers['user-agent'], 'Google-Cloud-Tasks');
  check('short names', told(seen, 'queuename', 'taskname'), ['deliver', 'first']);
  check('first attempt', told(seen, 'taskretrycount', 'taskpreviousresponse'), ['0', undefined]);
  await gone(name);
  await refused('its name again', CODES.exists, 'existed too recently', newTask(queue, url, { id: 'first' }));
}

async function retry() {
  const queue = await newQueue('retry');
  await gone(await newTask(queue, handler.answering('/retry', 503, 404, 200)));
  const seen = await handler.requests('/retry', 3);
  const counts = seen.map(one => told(one, 'taskretrycount', 'taskexecutioncount', 'taskpreviousresponse'));
  const expected = [
    ['0', '0', undefined],
    ['1', '0', '503'],
    ['2', '1', '404'],
  ];
  check('attempts are counted', counts, expected);

  const exhausted = await newQueue('exhausted', { retryConfig: { ...QUICK, maxAttempts: 2 } });
  const url = handler.answering('/exhausted', 500);
  await gone(await newTask(exhausted, url, { id: 'hopeless' }));
  check('attempts end at the maximum', handler.seen('/exhausted').length, 2);
  const again = newTask(exhausted, url, { id: 'hopeless' });
  await refused('the name of an exhausted task', CODES.exists, 'existed too recently', again);
}

async function states() {
  const queue = await newQueue('states');
  const url = handler.answering('/states');
  const [paused] = await client.pauseQueue({ name: queue });
  check('paused', paused.state, 'PAUSED');
  const name = await newTask(queue, url, { id: 'waits', request: { body: Buffer.from('secret') } });
  const again = newTask(queue, url, { id: 'waits' });
  await refused('a name that waits', CODES.exists, 'Requested entity already exists', again);
  const [full] = await client.getTask({ name, responseView: 'FULL' });
  check('the full view has the body', Buffer.from(full.httpRequest.body).toString(), 'secret');
  check('a paused queue sends nothing', handler.seen('/states').length, 0);
  await client.runTask({ name });
  await gone(name);
  check('run sends it, though the queue is paused', handler.seen('/states').length, 1);
  const later = { scheduleTime: { seconds: Math.floor(Date.now() / 1000) + 3600 } };
  for (const id of ['a', 'b', 'c']) await newTask(queue, url, { id, ...later });
  const ids = [];
  for await (const task of client.listTasksAsync({ parent: queue, pageSize: 2 })) ids.push(task.name.at(-1));
  check('every task is listed once', ids.sort(), ['a', 'b', 'c']);
  await client.deleteTask({ name: `${queue}/tasks/a` });
  await client.purgeQueue({ name: queue });
  await until('purge', async () => (await client.listTasks({ parent: queue }))[0].length === 0);
  console.log('ok: a purged queue is empty');
  await newTask(queue, url);
  const [resumed] = await client.resumeQueue({ name: queue });
  check('resumed', resumed.state, 'RUNNING');
  check('a resumed queue sends', (await handler.requests('/states', 2)).length, 2);
}

async function refusals() {
  const nowhere = newTask(`${LOCATION}/queues/none`, handler.root);
  await refused('a queue that is not there', CODES.missing, 'Queue does not exist', nowhere);
  const empty = client.createTask({ parent: `${LOCATION}/queues/states`, task: {} });
  await refused('a task without a target', CODES.invalid, 'payload_type is not set', empty);
}

function told(request, ...names) {
  return names.map(name => request.headers[`x-cloudtasks-${name}`]);
}

for (const part of [queues, deliver, retry, states, refusals]) await part();
handler.end();
await client.close();
