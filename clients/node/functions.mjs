// The task queues of firebase-admin: `CLOUD_TASKS_EMULATOR_HOST=HOST:PORT node functions.mjs`.
import { initializeApp } from 'firebase-admin/app';
import { getFunctions } from 'firebase-admin/functions';
import { Handler, check, refused } from './handler.mjs';

const broker = process.env.CLOUD_TASKS_EMULATOR_HOST;
const LOCATION = 'projects/shop/locations/us-central1';

const handler = await Handler.start();
initializeApp({ projectId: 'shop' });

// Queues come with a deployed function; here they are made by hand.
async function newQueue(short, fields = {}) {
  const queue = {
    name: `${LOCATION}/queues/${short}`,
    retryConfig: { minBackoff: '0.020s', maxBackoff: '0.050s' },
    ...fields,
  };
  const answer = await fetch(`http://${broker}/v2/${LOCATION}/queues`, {
    method: 'POST',
    body: JSON.stringify(queue),
  });
  check(`queue ${short}`, answer.status, 200);
  return getFunctions().taskQueue(short);
}

async function enqueue() {
  const queue = await newQueue('charge');
  const uri = handler.answering('/charge', 503, 200);
  await queue.enqueue({ order: 'A-1' }, { id: 'first', uri, headers: { 'X-Order': 'A-1' } });
  const seen = await handler.requests('/charge', 2);
  const [first, second] = seen;
  check('the data are the body', JSON.parse(first.body), { data: { order: 'A-1' } });
  const given = ['content-type', 'x-order', 'x-cloudtasks-queuename', 'x-cloudtasks-taskname'];
  const values = given.map(name => first.headers[name]);
  check('headers', values, ['application/json', 'A-1', 'charge', 'first']);
  check('a bearer token came', first.headers.authorization.startsWith('Bearer ey'), true);
  check('after 503 it comes again', second.headers['x-cloudtasks-taskpreviousresponse'], '503');
  const again = queue.enqueue({}, { id: 'first', uri });
  await refused('the same id again', 'functions/task-already-exists', 'already exists', again);
}

async function remove() {
  const queue = await newQueue('later');
  const uri = handler.answering('/later');
  await queue.enqueue({}, { id: 'deleted', uri, scheduleDelaySeconds: 3600 });
  const look = () => fetch(`http://${broker}/v2/${LOCATION}/queues/later/tasks/deleted`);
  check('it waits', (await look()).status, 200);
  await queue.delete('deleted');
  check('then it is gone', (await look()).status, 404);
  await queue.delete('deleted');
  console.log('ok: to delete it again does no harm');
}

// Without a URL the queue knows where its tasks go.
async function address() {
  const { hostname: host, port } = new URL(handler.root);
  const pathOverride = { path: '/address' };
  const uriOverride = { scheme: 'HTTP', host, port, pathOverride };
  const queue = await newQueue('address', { httpTarget: { uriOverride } });
  handler.answering('/address');
  await queue.enqueue({ order: 'A-2' });
  const [seen] = await handler.requests('/address');
  check('a task without a URL goes where its queue says', JSON.parse(seen.body), { data: { order: 'A-2' } });
}

for (const part of [enqueue, remove, address]) await part();
handler.end();
