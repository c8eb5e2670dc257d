// The cases of Google's Node samples and system tests of Pub/Sub, told again:
// `PUBSUB_EMULATOR_HOST=HOST:PORT node cases.mjs`. `docs/broker.md` says which case of theirs is which of ours.
import { Encodings, PubSub, SchemaTypes, SchemaViews, v1 } from '@google-cloud/pubsub';
import { check, refused, within } from './handler.mjs';

const [INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED] = [3, 5, 12];
const AVRO = '{"type":"record","name":"State","fields":[{"name":"name","type":"string"}]}';
const UTAH = { data: Buffer.from('{"name":"Utah"}') };

const client = new PubSub({ projectId: 'shop' });
const options = await client.getClientConfig();
const subscriber = new v1.SubscriberClient(options);
const schemaService = new v1.SchemaServiceClient(options);

let number = 0;
const fresh = () => `case-${number++}`;
const say = text => ({ data: Buffer.from(text) });

async function both(fields = {}) {
  const [topic] = await client.createTopic(fresh());
  const [subscription] = await topic.createSubscription(fresh(), fields);
  return { topic, subscription };
}

async function pull(subscription, maxMessages = 10) {
  const [answer] = await subscriber.pull({ subscription: subscription.name, maxMessages });
  return answer.receivedMessages;
}

async function topicsAndSubscriptions() {
  const { topic, subscription } = await both();
  const [topics] = await client.getTopics();
  check('a topic is listed', topics.some(one => one.name === topic.name), true);
  const [subscriptions] = await topic.getSubscriptions();
  check('so is its subscription', subscriptions.map(one => one.name), [subscription.name]);
  const [metadata] = await subscription.getMetadata();
  check('with its deadline', metadata.ackDeadlineSeconds, 10);
  await subscription.setMetadata({ ackDeadlineSeconds: 30 });
  check('which can change', (await subscription.getMetadata())[0].ackDeadlineSeconds, 30);
  await subscription.delete();
  check('a deleted subscription is gone', (await subscription.exists())[0], false);
  await topic.delete();
  check('a deleted topic is gone', (await topic.exists())[0], false);
}

async function publishing() {
  const { topic, subscription } = await both();
  const batched = client.topic(topic.name, { batching: { maxMessages: 10, maxMilliseconds: 100 } });
  const sent = ['one', 'two', 'three'].map(text => batched.publishMessage({ ...say(text), attributes: { a: 'b' } }));
  const ids = await Promise.all(sent);
  const received = await pull(subscription);
  check('a batch comes', received.map(one => one.message.messageId).sort(), ids.sort());
  check('with attributes', received[0].message.attributes, { a: 'b' });
  const retrying = client.topic(topic.name, {
    gaxOpts: { retry: { retryCodes: [10, 4, 14], backoffSettings: { initialRetryDelayMillis: 100 } } },
  });
  check('with retry settings', typeof (await retrying.publishMessage(say('four'))), 'string');
}

async function orderedPublishing() {
  const { topic, subscription } = await both({ enableMessageOrdering: true });
  const ordered = client.topic(topic.name, { messageOrdering: true });
  for (const text of ['1', '2', '3']) {
    await ordered.publishMessage({ ...say(text), orderingKey: 'k' });
  }
  ordered.resumePublishing('k');
  const seen = [];
  await within('three messages in order', done => {
    subscription.on('message', message => {
      seen.push(message.data.toString());
      message.ack();
      if (seen.length === 3) done();
    });
  });
  await subscription.close();
  check('messages of one key come in order', seen, ['1', '2', '3']);
}

async function publisherFlowControl() {
  const { topic, subscription } = await both();
  const controlled = client.topic(topic.name, { flowControlOptions: { maxOutstandingMessages: 2 } });
  const flow = controlled.flowControlled();
  for (let count = 0; count < 10; count++) {
    const wait = flow.publish(say(`${count}`));
    if (wait) await wait;
  }
  check('all are published', (await flow.all()).length, 10);
  check('and come', (await pull(subscription, 20)).length, 10);
}

async function errors() {
  const missing = client.subscription('nobody-made-it');
  const error = await within('an error', done => {
    missing.on('error', done);
    missing.on('message', () => {});
  });
  check('who listens to nothing is told', error.code, NOT_FOUND);
}

async function synchronousPull() {
  const { topic: graves } = await both();
  const policy = { deadLetterTopic: graves.name, maxDeliveryAttempts: 10 };
  const { topic, subscription } = await both({ deadLetterPolicy: policy });
  await topic.publishMessage(say('x'));
  const ask = { subscription: subscription.name };
  const [first] = await pull(subscription);
  await subscriber.modifyAckDeadline({ ...ask, ackIds: [first.ackId], ackDeadlineSeconds: 60 });
  await subscriber.modifyAckDeadline({ ...ask, ackIds: [first.ackId], ackDeadlineSeconds: 0 });
  const [second] = await pull(subscription);
  check('attempts are counted', [first.deliveryAttempt, second.deliveryAttempt], [1, 2]);
  await subscriber.acknowledge({ ...ask, ackIds: [second.ackId] });
}

async function pushSettings() {
  const pushConfig = { pushEndpoint: 'http://127.0.0.1:9/', noWrapper: { writeMetadata: true } };
  const { subscription } = await both({ pushConfig });
  const [metadata] = await subscription.getMetadata();
  check('without wrapper', metadata.pushConfig.noWrapper.writeMetadata, true);
  await subscription.modifyPushConfig({ pushEndpoint: 'http://127.0.0.1:9/other' });
  check('modified', (await subscription.getMetadata())[0].pushConfig.pushEndpoint, 'http://127.0.0.1:9/other');
}

async function settings() {
  const retryPolicy = { minimumBackoff: { seconds: 10 }, maximumBackoff: { seconds: 20 } };
  const { topic, subscription } = await both({ filter: 'attributes.author="unknown"', retryPolicy });
  const [metadata] = await subscription.getMetadata();
  check('a retry policy is kept', Number(metadata.retryPolicy.maximumBackoff.seconds), 20);
  await topic.publishMessage({ ...say('not this'), attributes: { author: 'known' } });
  await topic.publishMessage({ ...say('this'), attributes: { author: 'unknown' } });
  check('a filter filters', (await pull(subscription)).map(one => one.message.data.toString()), ['this']);
}

async function deadLetterPolicy() {
  const { topic: graves } = await both();
  const policy = maxDeliveryAttempts => ({ deadLetterPolicy: { deadLetterTopic: graves.name, maxDeliveryAttempts } });
  const { subscription } = await both(policy(10));
  await subscription.setMetadata(policy(15));
  const [changed] = await subscription.getMetadata();
  check('a dead letter policy changes', changed.deadLetterPolicy.maxDeliveryAttempts, 15);
  await subscription.setMetadata({ deadLetterPolicy: null });
  check('and goes', (await subscription.getMetadata())[0].deadLetterPolicy, null);
}

async function detach() {
  const { subscription } = await both();
  check('before', (await subscription.detached())[0], false);
  await client.detachSubscription(subscription.name);
  check('after', (await subscription.detached())[0], true);
}

async function policies() {
  const { topic, subscription } = await both();
  for (const { iam } of [topic, subscription]) {
    await iam.setPolicy({ bindings: [{ role: 'roles/pubsub.viewer', members: ['allUsers'] }] });
    const [policy] = await iam.getPolicy();
    check('a policy is shown', policy.bindings[0].members, ['allUsers']);
    const [granted] = await iam.testPermissions(['pubsub.topics.update']);
    check('and everything is granted', granted, { 'pubsub.topics.update': true });
  }
}

async function snapshots() {
  const { topic, subscription } = await both();
  await topic.publishMessage(say('x'));
  const [snapshot] = await subscription.createSnapshot(fresh());
  const [listed] = await client.getSnapshots();
  check('a snapshot is listed', listed.some(one => one.name === snapshot.name), true);
  const [one] = await pull(subscription);
  await subscriber.acknowledge({ subscription: subscription.name, ackIds: [one.ackId] });
  await subscription.seek(snapshot.name);
  check('a seek brings it back', (await pull(subscription)).length, 1);
  await subscription.seek(new Date(Date.now() + 60_000));
  await snapshot.delete();
  await refused('a deleted snapshot', NOT_FOUND, '', subscription.seek(snapshot.name));
}

async function schemas() {
  const id = fresh();
  const schema = await client.createSchema(id, SchemaTypes.Avro, AVRO);
  check('a schema is got', (await schema.get(SchemaViews.Full)).definition, AVRO);
  const listed = [];
  for await (const one of client.listSchemas()) listed.push(one.name);
  check('and listed', listed.includes(await schema.getName()), true);
  await client.validateSchema({ type: SchemaTypes.Avro, definition: AVRO });
  await schema.validateMessage(UTAH.data, Encodings.Json);
  const [topic] = await client.createTopic({
    name: fresh(),
    schemaSettings: { schema: await schema.getName(), encoding: Encodings.Json },
  });
  const [subscription] = await topic.createSubscription(fresh());
  await topic.publishMessage(UTAH);
  await refused('a message of another schema', INVALID_ARGUMENT, '', topic.publishMessage(say('{}')));
  const [one] = await pull(subscription);
  check('receivers are told the encoding', one.message.attributes.googclient_schemaencoding, 'JSON');
  await schema.delete();
  await refused('a deleted schema', NOT_FOUND, '', schema.get(SchemaViews.Full));
}

async function protobufSchemas() {
  const definition = 'syntax = "proto3"; message State { string name = 1; }';
  const schema = await client.createSchema(fresh(), SchemaTypes.ProtocolBuffer, definition);
  const name = await schema.getName();
  for (const [encoding, data] of [
    [Encodings.Json, UTAH.data],
    [Encodings.Binary, Buffer.from('\n\u0004Utah')],
  ]) {
    const [topic] = await client.createTopic({ name: fresh(), schemaSettings: { schema: name, encoding } });
    const [subscription] = await topic.createSubscription(fresh());
    await refused(`what is no ${encoding}`, INVALID_ARGUMENT, '', topic.publishMessage(say('\u0001')));
    await topic.publishMessage({ data });
    const [one] = await pull(subscription);
    check(`Protocol Buffers come in ${encoding}`, one.message.data, data);
    check('and say so', one.message.attributes.googclient_schemaencoding, encoding);
  }
}

async function schemaRevisions() {
  const schema = await client.createSchema(fresh(), SchemaTypes.Avro, AVRO);
  const name = await schema.getName();
  const [topic] = await client.createTopic({
    name: fresh(),
    schemaSettings: { schema: name, encoding: Encodings.Json },
  });
  const [subscription] = await topic.createSubscription(fresh());
  const commit = field => {
    const definition = AVRO.replace(']}', `,${JSON.stringify(field)}]}`);
    return schemaService.commitSchema({ name, schema: { name, type: 'AVRO', definition } });
  };
  const code = { name: 'code', type: 'int' };
  await refused('a field without a default', INVALID_ARGUMENT, 'incompatible with previous revision', commit(code));
  const [second] = await commit({ ...code, default: 0 });
  const [revisions] = await schemaService.listSchemaRevisions({ name });
  check('both revisions are listed', revisions.length, 2);
  await topic.publishMessage(UTAH);
  await topic.publishMessage({ data: Buffer.from('{"name":"Utah","code":49}') });
  const seen = (await pull(subscription)).map(one => one.message.attributes.googclient_schemarevisionid);
  check('each message says which it is of', seen.sort(), revisions.map(one => one.revisionId).sort());
  const [first] = revisions.filter(one => one.revisionId !== second.revisionId);
  const [third] = await schemaService.rollbackSchema({ name, revisionId: first.revisionId });
  check('a rollback is a new revision', third.definition, AVRO);
  await schemaService.deleteSchemaRevision({ name: `${name}@${second.revisionId}` });
  const [left] = await schemaService.listSchemaRevisions({ name });
  check('a deleted one is gone', left.some(one => one.revisionId === second.revisionId), false);
}

async function refusals() {
  const words = 'is not served here';
  const { topic } = await both();
  const transform = { javascriptUdf: { functionName: 'f', code: 'function f(m) { return m; }' } };
  for (const fields of [
    { bigqueryConfig: { table: 'p.d.t' } },
    { cloudStorageConfig: { bucket: 'b' } },
    { messageTransforms: [transform] },
  ]) {
    const created = topic.createSubscription(fresh(), fields);
    await refused(`a subscription with ${Object.keys(fields)}`, UNIMPLEMENTED, words, created);
  }
  for (const fields of [
    { ingestionDataSourceSettings: { awsKinesis: { streamArn: 'a' } } },
    { messageTransforms: [transform] },
    { kmsKeyName: 'k' },
  ]) {
    const created = client.createTopic({ name: fresh(), ...fields });
    await refused(`a topic with ${Object.keys(fields)}`, UNIMPLEMENTED, words, created);
  }
}

// All of them, in this order: a case that is not here is not run.
const CASES = [
  topicsAndSubscriptions,
  publishing,
  orderedPublishing,
  publisherFlowControl,
  errors,
  synchronousPull,
  pushSettings,
  settings,
  deadLetterPolicy,
  detach,
  policies,
  snapshots,
  schemas,
  protobufSchemas,
  schemaRevisions,
  refusals,
];

for (const part of CASES) await part();
await client.close();
await schemaService.close();
