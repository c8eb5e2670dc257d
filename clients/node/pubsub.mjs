// Pub/Sub with Google's Node client: `PUBSUB_EMULATOR_HOST=HOST:PORT node pubsub.mjs`.
import { Duration, PubSub } from '@google-cloud/pubsub';
import { Handler, check, refused, within } from './handler.mjs';

const ALREADY_EXISTS = 6;
const DEAD_LETTER_AFTER = 5;
// A nacked message comes again quickly, so that nobody waits.
const QUICK = { minimumBackoff: { nanos: 10_000_000 }, maximumBackoff: { nanos: 50_000_000 } };

const client = new PubSub({ projectId: 'shop' });
const handler = await Handler.start();

// A topic, and a subscription to it.
async function both(short, options = {}) {
  const [topic] = await client.createTopic(short);
  const [subscription] = await topic.createSubscription(short, { retryPolicy: QUICK, ...options });
  return { topic, subscription };
}

// Calls `each` with every message until it says that all have come.
async function receive(what, subscription, each) {
  await within(what, done => {
    subscription.on('error', error => done(Promise.reject(error)));
    subscription.on('message', message => each(message) && done());
  });
  await subscription.close();
}

function publish(topic, bodies, rest = {}) {
  return Promise.all(bodies.map(body => topic.publishMessage({ data: Buffer.from(body), ...rest })));
}

const numbers = (prefix, count) => Array.from({ length: count }, (_, number) => `${prefix}${number}`);

async function stream() {
  const { topic, subscription } = await both('stream');
  await refused('the same topic again', ALREADY_EXISTS, '', client.createTopic('stream'));
  const ids = await publish(topic, numbers('', 50), { attributes: { colour: 'red' } });
  const seen = new Map();
  const colours = new Set();
  let nacked;
  // The client opens five streams: each message must come on one of them only.
  await receive('50 messages and one again', subscription, message => {
    if (!nacked) {
      nacked = message.id;
      message.nack();
      return false;
    }
    seen.set(message.id, (seen.get(message.id) ?? 0) + 1);
    message.ack();
    colours.add(message.attributes.colour);
    return seen.size === 50;
  });
  check('all come, also the nacked one', [...seen.keys()].sort(), ids.sort());
  check('each once after that', Math.max(...seen.values()), 1);
  check('with its attributes', [...colours], ['red']);
  await publish(topic, ['last']);
  const again = client.subscription('stream');
  await receive('the last message', again, message => {
    check('what was acknowledged does not come again', message.data.toString(), 'last');
    message.ack();
    return true;
  });
}

async function deadLetter() {
  const graves = await both('graves');
  const policy = { deadLetterTopic: graves.topic.name, maxDeliveryAttempts: DEAD_LETTER_AFTER };
  const { topic, subscription } = await both('mortal', { deadLetterPolicy: policy });
  const [id] = await publish(topic, ['hopeless'], { attributes: { order: 'A-1' } });
  const attempts = [];
  subscription.on('message', message => {
    attempts.push(message.deliveryAttempt);
    message.nack();
  });
  await receive('a letter', graves.subscription, message => {
    message.ack();
    const given = message.attributes;
    check('body', message.data.toString(), 'hopeless');
    check('an id of its own', message.id === id, false);
    check('own attributes', given.order, 'A-1');
    check('count', given.CloudPubSubDeadLetterSourceDeliveryCount, '5');
    check('subscription', given.CloudPubSubDeadLetterSourceSubscription, 'mortal');
    return true;
  });
  await subscription.close();
  check('attempts were counted', attempts, [1, 2, 3, 4, 5]);
}

async function ordering() {
  const { subscription } = await both('ordered', { enableMessageOrdering: true });
  const topic = client.topic('ordered', { messageOrdering: true });
  for (const orderingKey of ['a', 'b']) await publish(topic, numbers(orderingKey, 10), { orderingKey });
  const seen = { a: [], b: [] };
  await receive('two keys', subscription, message => {
    seen[message.orderingKey].push(message.data.toString());
    message.ack();
    return seen.a.length + seen.b.length === 20;
  });
  check('each key is in order', seen, { a: numbers('a', 10), b: numbers('b', 10) });
}

async function exactlyOnce() {
  const { topic } = await both('once', { enableExactlyOnceDelivery: true });
  await publish(topic, ['once']);
  const subscription = client.subscription('once', { minAckDeadline: Duration.from({ seconds: 60 }) });
  const [first, second] = await within('two deliveries', done => {
    const seen = [];
    subscription.on('message', message => {
      seen.push(message);
      if (seen.length === 1) message.nack();
      else done(seen);
    });
  });
  check('it came again', first.id, second.id);
  check('an ack is confirmed', await second.ackWithResponse(), 'SUCCESS');
  await subscription.close();
}

async function flowControl() {
  const { topic } = await both('flow');
  const flowControl = { maxMessages: 2, allowExcessMessages: false };
  const subscription = client.subscription('flow', { flowControl, streamingOptions: { maxStreams: 1 } });
  await publish(topic, numbers('', 10));
  let held = 0;
  let most = 0;
  let count = 0;
  await receive('ten messages', subscription, message => {
    held += 1;
    most = Math.max(most, held);
    setImmediate(() => {
      held -= 1;
      message.ack();
    });
    return (count += 1) === 10;
  });
  check('never more than two were held', most <= 2, true);
}

async function push() {
  const pushEndpoint = handler.answering('/push', 503, 200);
  const { topic, subscription } = await both('push', { pushConfig: { pushEndpoint } });
  const [id] = await publish(topic, ['pushed']);
  const seen = (await handler.requests('/push', 2)).map(one => JSON.parse(one.body));
  check('pushed, and again after 503', seen.map(one => one.message.messageId), [id, id]);
  check('body', Buffer.from(seen[0].message.data, 'base64').toString(), 'pushed');
  check('subscription', seen[0].subscription, subscription.name);
}

for (const part of [stream, deadLetter, ordering, exactlyOnce, flowControl, push]) await part();
handler.end();
await client.close();
