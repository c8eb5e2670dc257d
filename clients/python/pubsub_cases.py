"""The cases of Google's samples and system tests of Pub/Sub, told again: `python pubsub_cases.py HOST:PORT`.

`docs/broker.md` says which case of theirs is which of ours. They run against Google's own emulator too."""

import concurrent.futures
import contextlib
import datetime
import itertools
import queue
import sys
import threading

from google.api_core import exceptions, retry
from google.cloud import pubsub_v1
from google.cloud.pubsub_v1.subscriber.scheduler import ThreadScheduler
from google.iam.v1 import iam_policy_pb2
from google.pubsub_v1.types import Encoding, Schema

from bus import PROJECT, Bus, Stream, bodies
from cases import case, raises, run, same
from handler import PATIENCE_S

NAMES = (f"case-{number}" for number in itertools.count())
AVRO = '{"type":"record","name":"State","fields":[{"name":"name","type":"string"},{"name":"post_abbr","type":"string"}]}'
AVRO_LATER = AVRO.replace("]}", ',{"name":"code","type":"int","default":0}]}')
PROTO = 'syntax = "proto3"; message State { string name = 1; string post_abbr = 2; }'
UTAH_JSON = b'{"name":"Utah","post_abbr":"UT"}'
UTAH_AVRO = b"\x08Utah\x04UT"
UTAH_PROTO = b"\x0a\x04Utah\x12\x02UT"


def not_served():
    return raises(exceptions.MethodNotImplemented, "is not served here")


def publisher(**options):
    return pubsub_v1.PublisherClient(**options)


def create_topic(bus, **fields):
    request = {"name": f"{PROJECT}/topics/{next(NAMES)}", **fields}
    return bus.publisher.create_topic(request=request).name


def create_subscription(bus, topic, **fields):
    request = {"name": f"{PROJECT}/subscriptions/{next(NAMES)}", "topic": topic, **fields}
    return bus.subscriber.create_subscription(request=request).name


def both(bus, **fields):
    topic = create_topic(bus)
    return topic, create_subscription(bus, topic, **fields)


def update(bus, name, paths, **fields):
    request = {"subscription": {"name": name, **fields}, "update_mask": {"paths": paths}}
    return bus.subscriber.update_subscription(request=request)


# --- topics


@case
def create_get_list_and_delete_a_topic(bus):
    name = create_topic(bus)
    same(bus.publisher.get_topic(topic=name).name, name)
    assert name in [topic.name for topic in bus.publisher.list_topics(project=PROJECT)]
    bus.publisher.delete_topic(topic=name)
    with raises(exceptions.NotFound):
        bus.publisher.get_topic(topic=name)


@case
def create_a_topic_that_is_there(bus):
    name = create_topic(bus)
    with raises(exceptions.AlreadyExists):
        bus.publisher.create_topic(name=name)


@case
def topic_with_ingestion_is_refused(bus):
    for source in ("aws_kinesis", "cloud_storage", "azure_event_hubs", "aws_msk", "confluent_cloud"):
        with not_served():
            create_topic(bus, ingestion_data_source_settings={source: {}})


@case
def topic_with_transforms_is_refused(bus):
    transform = {"javascript_udf": {"function_name": "f", "code": "function f(m) { return m; }"}}
    with not_served():
        create_topic(bus, message_transforms=[transform])


@case
def topic_with_a_key_of_ones_own_is_refused(bus):
    with not_served():
        create_topic(bus, kms_key_name="projects/p/locations/l/keyRings/r/cryptoKeys/k")


@case
def update_of_a_topics_type_is_refused(bus):
    topic = {"name": create_topic(bus), "ingestion_data_source_settings": {"aws_kinesis": {}}}
    with not_served():
        bus.publisher.update_topic(request={"topic": topic, "update_mask": {"paths": ["ingestion_data_source_settings"]}})


# --- publishing


@case
def publish_messages(bus):
    topic, subscription = both(bus)
    ids = bus.publish(topic, b"one", b"two")
    received = bus.pull_all(subscription, 2)
    same({one.message.message_id for one in received}, set(ids))


@case
def publish_with_custom_attributes(bus):
    topic, subscription = both(bus)
    bus.publish(topic, b"x", origin="sample", username="gcp")
    [one] = bus.pull_all(subscription, 1)
    same(dict(one.message.attributes), {"origin": "sample", "username": "gcp"})


@case
def publish_with_batch_settings(bus):
    topic, subscription = both(bus)
    batch = pubsub_v1.types.BatchSettings(max_messages=10, max_bytes=1024, max_latency=1)
    client = publisher(batch_settings=batch)
    futures = [client.publish(topic, b"%d" % number) for number in range(10)]
    same(len({future.result(PATIENCE_S) for future in futures}), 10)
    same(len(bus.pull_all(subscription, 10)), 10)


@case
def publish_with_retry_settings(bus):
    topic, subscription = both(bus)
    custom = retry.Retry(initial=0.25, maximum=90, multiplier=1.45, deadline=300)
    same(len(bus.publisher.publish(topic, b"x", retry=custom).result(PATIENCE_S)) > 0, True)
    same(bodies(bus.pull_all(subscription, 1)), [b"x"])


@case
def publish_with_error_handler(bus):
    done = threading.Event()
    future = bus.publisher.publish(create_topic(bus), b"x")
    future.add_done_callback(lambda _: done.set())
    assert done.wait(PATIENCE_S)
    with raises(exceptions.NotFound):
        bus.publisher.publish(f"{PROJECT}/topics/nobody-made-it", b"x").result(PATIENCE_S)


@case
def publish_with_flow_control(bus):
    topic, subscription = both(bus)
    control = pubsub_v1.types.PublishFlowControl(
        message_limit=2, byte_limit=10 * 1024, limit_exceeded_behavior=pubsub_v1.types.LimitExceededBehavior.BLOCK
    )
    client = publisher(publisher_options=pubsub_v1.types.PublisherOptions(flow_control=control))
    futures = [client.publish(topic, b"x") for _ in range(20)]
    concurrent.futures.wait(futures, PATIENCE_S)
    same(len(bus.pull_all(subscription, 20)), 20)


@case
def publish_with_ordering_keys(bus):
    topic, subscription = both(bus, enable_message_ordering=True)
    for number in range(5):
        bus.publish(topic, b"%d" % number, key="a")
    stream = Stream(bus, subscription)
    seen = []
    while len(seen) < 5:
        [one] = stream.take()
        seen.append(one.data)
        one.ack()
    stream.end()
    same(seen, [b"0", b"1", b"2", b"3", b"4"])


@case
def resume_publish_with_ordering_keys(bus):
    topic = f"{PROJECT}/topics/{next(NAMES)}"
    with raises(exceptions.NotFound):
        bus.publisher.publish(topic, b"x", ordering_key="k").result(PATIENCE_S)
    bus.publisher.create_topic(name=topic)
    bus.publisher.resume_publish(topic, "k")
    bus.publish(topic, b"y", key="k")


@case
def publish_large_messages(bus):
    topic, subscription = both(bus)
    # The client receives no more than 4 MiB from an emulator.
    bus.publish(topic, b"x" * 4_000_000)
    same([len(body) for body in bodies(bus.pull_all(subscription, 1))], [4_000_000])
    same(len(bus.publish(create_topic(bus), b"x" * 9_000_000)), 1)
    # Together they are more than a request may hold: the client has to split them.
    batch = pubsub_v1.types.BatchSettings(max_bytes=11_000_000, max_latency=1, max_messages=100)
    client, topic = publisher(batch_settings=batch), create_topic(bus)
    futures = [client.publish(topic, b"x" * 2_000_000) for _ in range(5)]
    same(len({future.result(PATIENCE_S) for future in futures}), 5)


@case
def publish_too_large_a_message(bus):
    with raises(exceptions.InvalidArgument):
        bus.publisher.api.publish(topic=create_topic(bus), messages=[{"data": b"x" * 10_500_000}])


@case
def publish_with_opentelemetry(bus):
    topic, subscription = both(bus)
    options = pubsub_v1.types.PublisherOptions(enable_open_telemetry_tracing=True)
    client = publisher(publisher_options=options)
    client.publish(topic, b"x", googclient_traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").result(
        PATIENCE_S
    )
    [one] = bus.pull_all(subscription, 1)
    assert one.message.attributes["googclient_traceparent"].startswith("00-")


# --- subscriptions


@case
def create_list_and_delete_subscriptions(bus):
    topic, subscription = both(bus)
    assert subscription in list(bus.publisher.list_topic_subscriptions(topic=topic))
    assert subscription in [one.name for one in bus.subscriber.list_subscriptions(project=PROJECT)]
    bus.subscriber.delete_subscription(subscription=subscription)
    with raises(exceptions.NotFound):
        bus.subscriber.get_subscription(subscription=subscription)


@case
def create_a_subscription_with_other_settings(bus):
    fields = {
        "ack_deadline_seconds": 30,
        "retain_acked_messages": True,
        "message_retention_duration": datetime.timedelta(hours=12),
    }
    ttl = datetime.timedelta(days=1, seconds=3810)
    _, name = both(bus, expiration_policy={"ttl": ttl}, **fields)
    got = bus.subscriber.get_subscription(subscription=name)
    same(got.expiration_policy.ttl, ttl)
    same({field: getattr(got, field) for field in fields}, fields)


@case
def create_update_and_remove_a_dead_letter_policy(bus):
    graves = create_topic(bus)
    _, name = both(bus, dead_letter_policy={"dead_letter_topic": graves, "max_delivery_attempts": 10})
    same(bus.subscriber.get_subscription(subscription=name).dead_letter_policy.max_delivery_attempts, 10)
    policy = {"dead_letter_topic": graves, "max_delivery_attempts": 20}
    changed = update(bus, name, ["dead_letter_policy"], dead_letter_policy=policy)
    same(changed.dead_letter_policy.max_delivery_attempts, 20)
    same(update(bus, name, ["dead_letter_policy"]).dead_letter_policy.dead_letter_topic, "")


@case
def receive_with_delivery_attempts(bus):
    policy = {"dead_letter_topic": create_topic(bus), "max_delivery_attempts": 10}
    topic, name = both(bus, dead_letter_policy=policy)
    bus.publish(topic, b"x")
    received = bus.pull_all(name, 1)
    bus.nack(name, received)
    same([one.delivery_attempt for one in received + bus.pull_all(name, 1)], [1, 2])


@case
def dead_letters_are_forwarded(bus):
    graves, grave = both(bus)
    topic, name = both(bus, dead_letter_policy={"dead_letter_topic": graves, "max_delivery_attempts": 5})
    bus.publish(topic, b"hopeless")
    for _ in range(5):
        bus.nack(name, bus.pull_all(name, 1))
    [one] = bus.pull_all(grave, 1)
    same(one.message.attributes["CloudPubSubDeadLetterSourceDeliveryCount"], "5")


@case
def create_a_subscription_with_ordering(bus):
    _, name = both(bus, enable_message_ordering=True)
    same(bus.subscriber.get_subscription(subscription=name).enable_message_ordering, True)


@case
def create_a_subscription_with_filtering(bus):
    topic, name = both(bus, filter='attributes.author="unknown"')
    bus.publish(topic, b"not this", author="known")
    bus.publish(topic, b"this", author="unknown")
    same(bodies(bus.pull_all(name, 1)), [b"this"])


@case
def filters_with_not_equal(bus):
    topic, name = both(bus, filter='attributes.author != "known"')
    bus.publish(topic, b"without")
    bus.publish(topic, b"known", author="known")
    bus.publish(topic, b"other", author="other")
    same(sorted(bodies(bus.pull_all(name, 2))), [b"other", b"without"])


@case
def create_a_subscription_with_exactly_once_delivery(bus):
    _, name = both(bus, enable_exactly_once_delivery=True)
    same(bus.subscriber.get_subscription(subscription=name).enable_exactly_once_delivery, True)


@case
def create_and_update_a_push_subscription(bus):
    _, name = both(bus, push_config={"push_endpoint": "http://127.0.0.1:9/one"})
    changed = update(bus, name, ["push_config"], push_config={"push_endpoint": "http://127.0.0.1:9/two"})
    same(changed.push_config.push_endpoint, "http://127.0.0.1:9/two")
    bus.subscriber.modify_push_config(subscription=name, push_config={})
    same(bus.subscriber.get_subscription(subscription=name).push_config.push_endpoint, "")


@case
def create_a_push_subscription_without_wrapper(bus):
    push = {"push_endpoint": "http://127.0.0.1:9/", "no_wrapper": {"write_metadata": True}}
    _, name = both(bus, push_config=push)
    same(bus.subscriber.get_subscription(subscription=name).push_config.no_wrapper.write_metadata, True)


@case
def exports_are_refused(bus):
    topic = create_topic(bus)
    for export in (
        {"bigquery_config": {"table": "p.d.t"}},
        {"cloud_storage_config": {"bucket": "b"}},
        {"bigtable_config": {"table": "t"}},
    ):
        with not_served():
            create_subscription(bus, topic, **export)


@case
def subscription_with_transforms_is_refused(bus):
    topic, name = both(bus)
    transform = {"javascript_udf": {"function_name": "f", "code": "function f(m) { return m; }"}}
    with not_served():
        create_subscription(bus, topic, message_transforms=[transform])
    with not_served():
        update(bus, name, ["message_transforms"], message_transforms=[transform])


@case
def detach_a_subscription(bus):
    _, name = both(bus)
    bus.publisher.detach_subscription(request={"subscription": name})
    same(bus.subscriber.get_subscription(subscription=name).detached, True)
    with raises(exceptions.FailedPrecondition):
        bus.pull(name, 1)


@case
def update_a_subscription_that_is_not_there(bus):
    with raises(exceptions.NotFound):
        update(bus, f"{PROJECT}/subscriptions/nobody-made-it", ["labels"], labels={"a": "b"})


# --- receiving


@case
def receive_messages(bus):
    topic, name = both(bus)
    stream = Stream(bus, name)
    bus.publish(topic, b"one", b"two", colour="red")
    received = stream.take(2)
    for one in received:
        one.ack()
    stream.end()
    same(sorted(bodies(received)), [b"one", b"two"])
    same({one.attributes["colour"] for one in received}, {"red"})


@case
def receive_with_exactly_once_delivery(bus):
    topic, name = both(bus, enable_exactly_once_delivery=True)
    bus.publish(topic, b"x")
    stream = Stream(bus, name)
    [one] = stream.take()
    one.ack_with_response().result(PATIENCE_S)
    stream.end()


@case
def an_old_ack_id_is_refused_under_exactly_once(bus):
    topic, name = both(bus, enable_exactly_once_delivery=True)
    bus.publish(topic, b"x")
    [one] = bus.pull_all(name, 1)
    bus.nack(name, [one])
    bus.ack(name, bus.pull_all(name, 1))
    with raises(exceptions.InvalidArgument):
        bus.ack(name, [one])


@case
def receive_with_flow_control(bus):
    topic, name = both(bus)
    bus.publish(topic, *[b"%d" % number for number in range(5)])
    stream = Stream(bus, name, max_messages=2)
    seen = 0
    while seen < 5:
        [one] = stream.take()
        one.ack()
        seen += 1
    stream.end()


@case
def receive_again_after_the_ack_deadline_of_a_stream(bus):
    topic, name = both(bus, ack_deadline_seconds=600)
    bus.publish(topic, b"x")
    asked = queue.Queue()
    asked.put(pubsub_v1.types.StreamingPullRequest(subscription=name, stream_ack_deadline_seconds=10))
    answers = bus.subscriber.streaming_pull(requests=iter(asked.get, None), timeout=PATIENCE_S)
    came = (one.message.message_id for answer in answers for one in answer.received_messages)
    first = next(came)
    bus.advance("11s")
    same(next(came), first)
    asked.put(None)


@case
def receive_with_blocking_shutdown(bus):
    topic, name = both(bus)
    bus.publish(topic, b"x")
    begun, finished = threading.Event(), threading.Event()

    def callback(message):
        begun.set()
        message.ack()
        finished.set()

    future = bus.subscriber.subscribe(name, callback, await_callbacks_on_shutdown=True)
    assert begun.wait(PATIENCE_S)
    future.cancel()
    future.result(PATIENCE_S)
    same(finished.is_set(), True)


@case
def receive_with_concurrency_control(bus):
    topic, name = both(bus)
    scheduler = ThreadScheduler(concurrent.futures.ThreadPoolExecutor(max_workers=2))
    came = threading.Semaphore(0)
    future = bus.subscriber.subscribe(name, lambda one: (one.ack(), came.release()), scheduler=scheduler)
    bus.publish(topic, b"one", b"two", b"three")
    assert all(came.acquire(timeout=PATIENCE_S) for _ in range(3))
    future.cancel()
    future.result(PATIENCE_S)


@case
def listen_for_errors(bus):
    future = bus.subscriber.subscribe(f"{PROJECT}/subscriptions/nobody-made-it", lambda one: one.ack())
    with raises(exceptions.NotFound):
        future.result(PATIENCE_S)


@case
def errors_of_a_callback_reach_nobody_else(bus):
    topic, name = both(bus, retry_policy={"minimum_backoff": {"seconds": 0}, "maximum_backoff": {"seconds": 0}})
    came, again = threading.Event(), threading.Event()

    def callback(message):
        if not came.is_set():
            came.set()
            message.nack()
            raise ValueError("the first one fails")
        message.ack()
        again.set()

    future = bus.subscriber.subscribe(name, callback)
    bus.publish(topic, b"x")
    assert again.wait(PATIENCE_S)
    future.cancel()
    with contextlib.suppress(Exception):
        future.result(PATIENCE_S)


@case
def receive_synchronously(bus):
    topic, name = both(bus)
    bus.publish(topic, b"one", b"two", b"three")
    received = bus.pull_all(name, 3)
    bus.ack(name, received)
    same(len(received), 3)


@case
def receive_synchronously_with_lease(bus):
    topic, name = both(bus)
    bus.publish(topic, b"x")
    received = bus.pull_all(name, 1)
    ids = [one.ack_id for one in received]
    bus.subscriber.modify_ack_deadline(subscription=name, ack_ids=ids, ack_deadline_seconds=60)
    request = {"subscription": name, "max_messages": 1, "return_immediately": True}
    same(len(bus.subscriber.pull(request=request).received_messages), 0)
    bus.ack(name, received)


@case
def optimistic_subscribe(bus):
    topic = create_topic(bus)
    name = f"{PROJECT}/subscriptions/{next(NAMES)}"
    with raises(exceptions.NotFound):
        bus.subscriber.subscribe(name, lambda one: one.ack()).result(PATIENCE_S)
    bus.subscriber.create_subscription(name=name, topic=topic)
    stream = Stream(bus, name)
    bus.publish(topic, b"x")
    stream.take()[0].ack()
    stream.end()


@case
def seek_to_a_time(bus):
    topic, name = both(bus, retain_acked_messages=True)
    before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=30)
    bus.publish(topic, b"x")
    bus.ack(name, bus.pull_all(name, 1))
    bus.subscriber.seek(request={"subscription": name, "time": before})
    same(bodies(bus.pull_all(name, 1)), [b"x"])


@case
def seek_releases_what_is_leased(bus):
    topic, name = both(bus, ack_deadline_seconds=600)
    before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=30)
    bus.publish(topic, b"x")
    bus.pull_all(name, 1)
    bus.subscriber.seek(request={"subscription": name, "time": before})
    request = {"subscription": name, "max_messages": 1}
    same(len(bus.subscriber.pull(request=request, timeout=5).received_messages), 1)


@case
def create_list_seek_and_delete_a_snapshot(bus):
    topic, name = both(bus)
    bus.publish(topic, b"x")
    snapshot = bus.subscriber.create_snapshot(name=f"{PROJECT}/snapshots/{next(NAMES)}", subscription=name).name
    assert snapshot in [one.name for one in bus.subscriber.list_snapshots(project=PROJECT)]
    bus.ack(name, bus.pull_all(name, 1))
    bus.subscriber.seek(request={"subscription": name, "snapshot": snapshot})
    same(bodies(bus.pull_all(name, 1)), [b"x"])
    bus.subscriber.delete_snapshot(snapshot=snapshot)
    with raises(exceptions.NotFound):
        bus.subscriber.get_snapshot(snapshot=snapshot)


# --- policies


@case
def get_and_set_policies(bus):
    topic, name = both(bus)
    for client, resource in ((bus.publisher, topic), (bus.subscriber, name)):
        policy = client.get_iam_policy(request={"resource": resource})
        policy.bindings.add(role="roles/pubsub.viewer", members=["domain:google.com"])
        client.set_iam_policy(request={"resource": resource, "policy": policy})
        got = client.get_iam_policy(request={"resource": resource})
        same([binding.role for binding in got.bindings], ["roles/pubsub.viewer"])


@case
def test_permissions(bus):
    topic, name = both(bus)
    for client, resource in ((bus.publisher, topic), (bus.subscriber, name)):
        asked = ["pubsub.topics.publish", "pubsub.subscriptions.consume"]
        request = iam_policy_pb2.TestIamPermissionsRequest(resource=resource, permissions=asked)
        same(list(client.test_iam_permissions(request).permissions), asked)


# --- schemas


class Schemas:
    def __init__(self, definition=AVRO, kind=Schema.Type.AVRO):
        self.client, self.kind = pubsub_v1.SchemaServiceClient(), kind
        schema = Schema(name="", type_=kind, definition=definition)
        request = {"parent": PROJECT, "schema": schema, "schema_id": next(NAMES)}
        self.first = self.client.create_schema(request=request)
        self.name = self.first.name

    def commit(self, definition):
        schema = Schema(name=self.name, type_=self.kind, definition=definition)
        return self.client.commit_schema(request={"name": self.name, "schema": schema})


def topic_with(bus, schemas, encoding, **settings):
    return create_topic(bus, schema_settings={"schema": schemas.name, "encoding": encoding, **settings})


@case
def create_get_list_and_delete_schemas(bus):
    for definition, kind in ((AVRO, Schema.Type.AVRO), (PROTO, Schema.Type.PROTOCOL_BUFFER)):
        schemas = Schemas(definition, kind)
        same(schemas.client.get_schema(name=schemas.name).definition, definition)
        assert schemas.name in [one.name for one in schemas.client.list_schemas(parent=PROJECT)]
        schemas.client.delete_schema(name=schemas.name)
        with raises(exceptions.NotFound):
            schemas.client.get_schema(name=schemas.name)


@case
def a_definition_that_is_none_is_refused(bus):
    with raises(exceptions.InvalidArgument):
        Schemas("{")
    with raises(exceptions.InvalidArgument):
        Schemas("message", Schema.Type.PROTOCOL_BUFFER)


@case
def commit_list_and_get_revisions(bus):
    schemas = Schemas()
    second = schemas.commit(AVRO_LATER)
    revisions = schemas.client.list_schema_revisions(name=schemas.name)
    same({one.revision_id for one in revisions}, {schemas.first.revision_id, second.revision_id})
    got = schemas.client.get_schema(name=f"{schemas.name}@{schemas.first.revision_id}")
    same(got.definition, AVRO)


@case
def commit_an_avro_revision_that_is_not_compatible(bus):
    schemas = Schemas()
    with raises(exceptions.InvalidArgument, schemas.first.revision_id):
        schemas.commit(AVRO.replace("]}", ',{"name":"code","type":"int"}]}'))


@case
def commit_a_protobuf_revision_that_is_not_compatible(bus):
    schemas = Schemas(PROTO, Schema.Type.PROTOCOL_BUFFER)
    schemas.commit(PROTO.replace("}", "string code = 3; }"))
    with raises(exceptions.InvalidArgument, "incompatible with previous revision"):
        schemas.commit(PROTO.replace("string post_abbr", "int32 post_abbr"))


@case
def roll_back_and_delete_a_revision(bus):
    schemas = Schemas()
    second = schemas.commit(AVRO_LATER)
    request = {"name": schemas.name, "revision_id": schemas.first.revision_id}
    third = schemas.client.rollback_schema(request=request)
    same(third.definition, AVRO)
    schemas.client.delete_schema_revision(request={"name": f"{schemas.name}@{second.revision_id}"})
    left = schemas.client.list_schema_revisions(name=schemas.name)
    same({one.revision_id for one in left}, {schemas.first.revision_id, third.revision_id})


@case
def create_a_topic_with_a_schema_and_revisions(bus):
    schemas = Schemas()
    second = schemas.commit(AVRO_LATER)
    ids = {"first_revision_id": schemas.first.revision_id, "last_revision_id": second.revision_id}
    topic = topic_with(bus, schemas, Encoding.JSON, **ids)
    same(bus.publisher.get_topic(topic=topic).schema_settings.last_revision_id, second.revision_id)


@case
def update_a_topics_schema(bus):
    schemas = Schemas()
    topic = topic_with(bus, schemas, Encoding.JSON)
    second = schemas.commit(AVRO_LATER)
    settings = {"first_revision_id": schemas.first.revision_id, "last_revision_id": second.revision_id}
    paths = ["schema_settings.first_revision_id", "schema_settings.last_revision_id"]
    request = {"topic": {"name": topic, "schema_settings": settings}, "update_mask": {"paths": paths}}
    same(bus.publisher.update_topic(request=request).schema_settings.last_revision_id, second.revision_id)


@case
def publish_and_receive_avro(bus):
    check_encodings(bus, Schemas(), UTAH_AVRO)


@case
def publish_and_receive_protobuf(bus):
    check_encodings(bus, Schemas(PROTO, Schema.Type.PROTOCOL_BUFFER), UTAH_PROTO)


def check_encodings(bus, schemas, binary):
    for encoding, data in ((Encoding.JSON, UTAH_JSON), (Encoding.BINARY, binary)):
        topic = topic_with(bus, schemas, encoding)
        name = create_subscription(bus, topic)
        with raises(exceptions.InvalidArgument):
            bus.publish(topic, b"not a state")
        bus.publish(topic, data)
        [one] = bus.pull_all(name, 1)
        same(one.message.data, data)
        same(one.message.attributes["googclient_schemaencoding"], encoding.name)


@case
def receive_avro_of_several_revisions(bus):
    schemas = Schemas()
    topic = topic_with(bus, schemas, Encoding.JSON)
    name = create_subscription(bus, topic)
    second = schemas.commit(AVRO_LATER)
    bus.publish(topic, UTAH_JSON)
    bus.publish(topic, UTAH_JSON.replace(b"}", b',"code":49}'))
    revisions = [one.message.attributes["googclient_schemarevisionid"] for one in bus.pull_all(name, 2)]
    same(set(revisions), {schemas.first.revision_id, second.revision_id})


@case
def validate_schemas_and_messages(bus):
    client = pubsub_v1.SchemaServiceClient()
    schema = Schema(type_=Schema.Type.AVRO, definition=AVRO)
    client.validate_schema(request={"parent": PROJECT, "schema": schema})
    request = {"parent": PROJECT, "schema": schema, "encoding": Encoding.JSON}
    client.validate_message(request={**request, "message": UTAH_JSON})
    with raises(exceptions.InvalidArgument):
        client.validate_message(request={**request, "message": b"{}"})


if __name__ == "__main__":
    run(Bus(sys.argv[1]))
