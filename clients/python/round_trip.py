"""Every field of every resource that is served comes back as it was set: `python round_trip.py HOST:PORT grpc|rest`.

The samples below set each field that the broker calls served or kept; one that they leave out fails the program."""

import datetime
import json
import sys
import urllib.request

import grpc
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import tasks_v2, tasks_v2beta3
from google.iam.v1 import iam_policy_pb2, policy_pb2
from google.protobuf.message import Message
from google.pubsub_v1 import PublisherClient, SchemaServiceClient, SubscriberClient, types

from handler import check

PROJECT = "projects/shop"
LOCATION = f"{PROJECT}/locations/here"
WHOLE = ("google.protobuf.", "google.rpc.")
AVRO = '{"type": "record", "name": "R", "fields": []}'
RETRY = {
    "max_attempts": 7,
    "max_retry_duration": {"seconds": 60},
    "min_backoff": {"seconds": 2},
    "max_backoff": {"seconds": 20},
    "max_doublings": 3,
}
OIDC = {"oidc_token": {"service_account_email": "a@b.c", "audience": "somebody"}}
OAUTH = {"oauth_token": {"service_account_email": "a@b.c", "scope": "https://www.googleapis.com/auth/x"}}
ROUTING = {"service": "worker", "version": "v1", "instance": "i1", "host": "127.0.0.1:9"}
TARGET = {
    "uri_override": {
        "scheme": "HTTP",
        "host": "localhost",
        "port": 8080,
        "path_override": {"path": "/work"},
        "query_override": {"query_params": "a=b"},
        "uri_override_enforce_mode": "ALWAYS",
    },
    "http_method": "PUT",
    "header_overrides": [{"header": {"key": "a", "value": "b"}}],
}
QUEUE = {
    "rate_limits": {"max_dispatches_per_second": 7, "max_concurrent_dispatches": 8},
    "retry_config": RETRY,
    "stackdriver_logging_config": {"sampling_ratio": 0.5},
}


class Clients:
    def __init__(self, broker, transport):
        self.broker, self.transport = broker, transport

    def of(self, client):
        if self.transport == "rest":
            options = ClientOptions(api_endpoint=f"http://{self.broker}")
            return client(transport="rest", credentials=AnonymousCredentials(), client_options=options)
        channel = grpc.insecure_channel(self.broker)
        return client(transport=client.get_transport_class("grpc")(channel=channel))


class Coverage:
    """Which fields came back, by their messages."""

    def __init__(self, broker):
        with urllib.request.urlopen(f"http://{broker}/_semel/interface", timeout=10) as answer:
            services = json.load(answer)["services"]
        self.fields = {
            (message["name"], field["number"]): field
            for service in services
            for message in service["messages"]
            for field in message["fields"]
        }
        self.seen = set()

    def came_back(self, sent, got):
        """Everything that was sent is there; of a map, the broker may add to it."""
        sent, got = pb(sent), pb(got)
        for field, value in sent.ListFields():
            there = getattr(got, field.name)
            name = f"{sent.DESCRIPTOR.full_name}.{field.name}"
            self.seen.add((sent.DESCRIPTOR.full_name, field.number))
            if field.message_type and field.message_type.GetOptions().map_entry:
                assert dict(value).items() <= dict(there).items(), f"{name}: {there}"
            elif field.message_type and not field.message_type.full_name.startswith(WHOLE):
                items = zip(value, there, strict=True) if field.is_repeated else [(value, there)]
                for one, other in items:
                    self.came_back(one, other)
            else:
                assert value == there, f"{name}: sent {value!r}, got {there!r}"

    def missing(self, message, missing):
        """The fields of a resource that are served or kept and were in no sample."""
        for field in message.fields:
            standing = self.fields[(message.full_name, field.number)]["standing"]
            if standing not in ("served", "kept"):
                continue
            if (message.full_name, field.number) not in self.seen:
                missing.append(f"{message.full_name}.{field.name}")
            inner = field.message_type
            if inner and not inner.full_name.startswith(WHOLE) and not inner.GetOptions().map_entry:
                self.missing(inner, missing)
        return missing


def pb(message):
    return message if isinstance(message, Message) else type(message).pb(message)


def schemas(clients, coverage):
    client = clients.of(SchemaServiceClient)
    sent = types.Schema(name=f"{PROJECT}/schemas/sample", type_="AVRO", definition=AVRO)
    made = client.create_schema(parent=PROJECT, schema=sent, schema_id="sample")
    coverage.came_back(sent, client.get_schema(name=made.name))
    return made


def topics(clients, coverage, schema):
    client = clients.of(PublisherClient)
    sent = types.Topic(
        name=f"{PROJECT}/topics/sample",
        labels={"a": "b"},
        message_storage_policy={"allowed_persistence_regions": ["here"], "enforce_in_transit": True},
        schema_settings={
            "schema": schema.name,
            "encoding": "JSON",
            "first_revision_id": schema.revision_id,
            "last_revision_id": schema.revision_id,
        },
        message_retention_duration=datetime.timedelta(hours=1),
    )
    client.create_topic(sent)
    coverage.came_back(sent, client.get_topic(topic=sent.name))
    policy = policy_pb2.Policy(version=3)
    policy.bindings.add(role="roles/x", members=["user:a@b.c"]).condition.CopyFrom(
        type(policy.bindings.add().condition)(expression="true", title="t", description="d", location="l")
    )
    del policy.bindings[1:]
    got = client.get_iam_policy(iam_policy_pb2.GetIamPolicyRequest(resource=sent.name))
    policy.etag = got.etag
    client.set_iam_policy(iam_policy_pb2.SetIamPolicyRequest(resource=sent.name, policy=policy))
    coverage.seen.add(("google.iam.v1.Policy", 3))
    policy.etag = b""
    coverage.came_back(policy, client.get_iam_policy(iam_policy_pb2.GetIamPolicyRequest(resource=sent.name)))
    return sent.name


def subscriptions(clients, coverage, topic):
    client = clients.of(SubscriberClient)
    push = {"push_endpoint": "http://127.0.0.1:9/", "attributes": {"x-goog-version": "v1"}, **OIDC}
    common = {
        "topic": topic,
        "ack_deadline_seconds": 77,
        "retain_acked_messages": True,
        "message_retention_duration": datetime.timedelta(hours=1),
        "labels": {"a": "b"},
        "enable_message_ordering": True,
        "expiration_policy": {"ttl": datetime.timedelta(days=2)},
        "filter": "attributes:a",
        "dead_letter_policy": {"dead_letter_topic": topic, "max_delivery_attempts": 7},
        "retry_policy": {
            "minimum_backoff": datetime.timedelta(seconds=20),
            "maximum_backoff": datetime.timedelta(seconds=30),
        },
    }
    samples = {
        "pulled": {**common, "enable_exactly_once_delivery": True},
        "wrapped": {**common, "push_config": {**push, "pubsub_wrapper": {}}},
        "unwrapped": {**common, "push_config": {**push, "no_wrapper": {"write_metadata": True}}},
    }
    for short, sample in samples.items():
        sent = types.Subscription(name=f"{PROJECT}/subscriptions/{short}", **sample)
        client.create_subscription(sent)
        coverage.came_back(sent, client.get_subscription(subscription=sent.name))
    expire_time = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0) + datetime.timedelta(days=1)
    sent = types.Snapshot(name=f"{PROJECT}/snapshots/sample", labels={"a": "b"}, expire_time=expire_time)
    subscription = f"{PROJECT}/subscriptions/pulled"
    client.create_snapshot(request={"name": sent.name, "subscription": subscription, "labels": {"c": "d"}})
    client.update_snapshot(request={"snapshot": sent, "update_mask": {"paths": ["labels", "expire_time"]}})
    coverage.came_back(sent, client.get_snapshot(snapshot=sent.name))


def queues(clients, coverage, library, prefix, override):
    """Queues and tasks of one version; the queue is paused, so that nothing is sent."""
    client = clients.of(library.CloudTasksClient)
    for short, token in (("oidc", OIDC), ("oauth", OAUTH)):
        sent = library.Queue(name=f"{LOCATION}/queues/{prefix}-{short}", http_target={**TARGET, **token}, **QUEUE, **override)
        client.create_queue(parent=LOCATION, queue=sent)
        coverage.came_back(sent, client.get_queue(name=sent.name))
    queue = client.create_queue(parent=LOCATION, queue={"name": f"{LOCATION}/queues/{prefix}-tasks"}).name
    client.pause_queue(name=queue)
    request = {"http_method": "PUT", "headers": {"A": "b"}, "body": b"hello"}
    google, here = {"url": "https://x.googleapis.com/"}, {"url": "http://127.0.0.1:9/"}
    samples = [
        {"http_request": {**request, **here, **OIDC}},
        {"http_request": {**request, **google, **OAUTH}},
        {"app_engine_http_request": {**request, "relative_uri": "/work", "app_engine_routing": ROUTING}},
    ]
    when = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0) + datetime.timedelta(days=1)
    for number, sample in enumerate(samples):
        sent = library.Task(
            name=f"{queue}/tasks/t{number}",
            schedule_time=when,
            dispatch_deadline=datetime.timedelta(seconds=20),
            retry_config=RETRY,
            **sample,
        )
        client.create_task(parent=queue, task=sent)
        full = {"name": sent.name, "response_view": library.Task.View.FULL}
        coverage.came_back(sent, client.get_task(full))


def main(broker, transport):
    clients, coverage = Clients(broker, transport), Coverage(broker)
    schema = schemas(clients, coverage)
    topic = topics(clients, coverage, schema)
    subscriptions(clients, coverage, topic)
    queues(clients, coverage, tasks_v2, "v2", {"app_engine_routing_override": ROUTING})
    beta = {"app_engine_http_queue": {"app_engine_routing_override": ROUTING}, "type_": "PUSH"}
    queues(clients, coverage, tasks_v2beta3, "beta", beta)
    resources = [types.Topic, types.Subscription, types.Snapshot, types.Schema, policy_pb2.Policy]
    for library in (tasks_v2, tasks_v2beta3):
        resources += [library.Queue, library.Task]
    for resource in resources:
        described = pb(resource()).DESCRIPTOR
        check(f"every field of {described.full_name} comes back", coverage.missing(described, []), [])


if __name__ == "__main__":
    main(*sys.argv[1:])
