"""What each field of a request does, shown: `python effects.py HOST:PORT grpc|rest`.

Fields of resources come back as they were set, which `round_trip.py` shows; a field that a request has beside them is
shown here to change what happens. One that the broker calls served and nobody shows fails the program."""

import datetime
import json
import queue
import sys
import urllib.request

from google.api_core import exceptions
from google.cloud import tasks_v2, tasks_v2beta3
from google.iam.v1 import iam_policy_pb2 as iam
from google.iam.v1 import policy_pb2 as iam_policy
from google.pubsub_v1 import PublisherClient, SchemaServiceClient, SubscriberClient, types

from cases import raises, same
from handler import PATIENCE_S, check
from round_trip import Clients, pb

PROJECT, OTHER = "projects/shop", "projects/other"
TOPIC, SUBSCRIPTION = f"{PROJECT}/topics/one", f"{PROJECT}/subscriptions/one"
SNAPSHOT, SCHEMA = f"{PROJECT}/snapshots/one", f"{PROJECT}/schemas/one"
LOCATION = f"{PROJECT}/locations/here"
AVRO = '{"type": "record", "name": "R", "fields": []}'
LATER = AVRO.replace("[]", '[{"name": "a", "type": "int", "default": 0}]')
PUBSUB, IAM = "google.pubsub.v1.", "google.iam.v1."
SHOWN = set()


class World:
    def __init__(self, broker, transport):
        clients = Clients(broker, transport)
        self.transport = transport
        self.publisher, self.subscriber = clients.of(PublisherClient), clients.of(SubscriberClient)
        self.schemas = clients.of(SchemaServiceClient)
        self.tasks = {"v2": clients.of(tasks_v2.CloudTasksClient), "v2beta3": clients.of(tasks_v2beta3.CloudTasksClient)}
        self.fill()

    def fill(self):
        """Two of everything, so that lists have a second page."""
        for short in ("one", "two"):
            topic = self.publisher.create_topic(name=f"{PROJECT}/topics/{short}").name
            name = f"{PROJECT}/subscriptions/{short}"
            self.subscriber.create_subscription(name=name, topic=TOPIC)
            schema = {"type_": "AVRO", "definition": AVRO}
            made = self.schemas.create_schema(request={"parent": PROJECT, "schema": schema, "schema_id": short})
            same((topic, made.name), (f"{PROJECT}/topics/{short}", f"{PROJECT}/schemas/{short}"))
        shown(f"{PUBSUB}CreateSchemaRequest.", "parent", "schema_id", "schema")
        self.schemas.commit_schema(name=SCHEMA, schema={"type_": "AVRO", "definition": LATER})
        for short in ("one", "two"):
            request = {"name": f"{PROJECT}/snapshots/{short}", "subscription": SUBSCRIPTION, "labels": {"a": short}}
            self.subscriber.create_snapshot(request=request)
        got = self.subscriber.get_snapshot(snapshot=SNAPSHOT)
        same((got.topic, dict(got.labels)), (TOPIC, {"a": "one"}))
        shown(f"{PUBSUB}CreateSnapshotRequest.", "name", "subscription", "labels")
        for version, client in self.tasks.items():
            for short in ("one", "two"):
                made = client.create_queue(parent=LOCATION, queue={"name": f"{LOCATION}/queues/{version}-{short}"})
                client.pause_queue(name=made.name)
                for task in ("one", "two"):
                    http = {"url": "http://127.0.0.1:9/", "body": b"hello"}
                    named = {"name": f"{made.name}/tasks/{task}", "http_request": http}
                    request = {"parent": made.name, "task": named, "response_view": 2}
                    same(client.create_task(request=request).http_request.body, b"hello")
            shown(f"google.cloud.tasks.{version}.", "CreateQueueRequest.parent", "CreateQueueRequest.queue")
            prefix = f"google.cloud.tasks.{version}.CreateTaskRequest."
            shown(prefix, "parent", "task", "response_view")


def shown(prefix, *names):
    SHOWN.update(prefix + name for name in names)


def names(world):
    """A name says which is meant: of one that is missing it is said."""
    topic, subscription = f"{PROJECT}/topics/none", f"{PROJECT}/subscriptions/none"
    snapshot, schema = f"{PROJECT}/snapshots/none", f"{PROJECT}/schemas/none"
    publisher, subscriber, schemas = world.publisher, world.subscriber, world.schemas
    now = datetime.datetime.now(datetime.timezone.utc)
    labels = {"paths": ["labels"]}
    avro = {"type_": "AVRO", "definition": AVRO}
    for call, message, field, request in [
        (publisher.get_topic, "GetTopic", "topic", {"topic": topic}),
        (publisher.delete_topic, "DeleteTopic", "topic", {"topic": topic}),
        (publisher.update_topic, "UpdateTopic", "topic", {"topic": {"name": topic}, "update_mask": labels}),
        (publisher.publish, "Publish", "topic", {"topic": topic, "messages": [{"data": b"x"}]}),
        (publisher.list_topic_subscriptions, "ListTopicSubscriptions", "topic", {"topic": topic}),
        (publisher.list_topic_snapshots, "ListTopicSnapshots", "topic", {"topic": topic}),
        (publisher.detach_subscription, "DetachSubscription", "subscription", {"subscription": subscription}),
        (subscriber.get_subscription, "GetSubscription", "subscription", {"subscription": subscription}),
        (subscriber.delete_subscription, "DeleteSubscription", "subscription", {"subscription": subscription}),
        (
            subscriber.update_subscription,
            "UpdateSubscription",
            "subscription",
            {"subscription": {"name": subscription}, "update_mask": labels},
        ),
        (subscriber.pull, "Pull", "subscription", {"subscription": subscription, "max_messages": 1}),
        (subscriber.acknowledge, "Acknowledge", "subscription", {"subscription": subscription, "ack_ids": ["x"]}),
        (
            subscriber.modify_ack_deadline,
            "ModifyAckDeadline",
            "subscription",
            {"subscription": subscription, "ack_ids": ["x"], "ack_deadline_seconds": 10},
        ),
        (
            subscriber.modify_push_config,
            "ModifyPushConfig",
            "subscription",
            {"subscription": subscription, "push_config": {}},
        ),
        (subscriber.seek, "Seek", "subscription", {"subscription": subscription, "time": now}),
        (subscriber.get_snapshot, "GetSnapshot", "snapshot", {"snapshot": snapshot}),
        (subscriber.delete_snapshot, "DeleteSnapshot", "snapshot", {"snapshot": snapshot}),
        (
            subscriber.update_snapshot,
            "UpdateSnapshot",
            "snapshot",
            {"snapshot": {"name": snapshot}, "update_mask": labels},
        ),
        (schemas.get_schema, "GetSchema", "name", {"name": schema}),
        (schemas.delete_schema, "DeleteSchema", "name", {"name": schema}),
        (schemas.list_schema_revisions, "ListSchemaRevisions", "name", {"name": schema}),
        (schemas.commit_schema, "CommitSchema", "name", {"name": schema, "schema": avro}),
        (schemas.rollback_schema, "RollbackSchema", "name", {"name": schema, "revision_id": "x"}),
        (schemas.delete_schema_revision, "DeleteSchemaRevision", "name", {"name": f"{schema}@x"}),
        (schemas.validate_message, "ValidateMessage", "name", {"parent": PROJECT, "name": schema, "encoding": "JSON"}),
    ]:
        with raises(exceptions.NotFound):
            call(request=request)
        shown(PUBSUB, f"{message}Request.{field}")


def names_of_queues(world):
    for version, client in world.tasks.items():
        name = f"{LOCATION}/queues/none"
        task = {"http_request": {"url": "http://127.0.0.1:9/"}}
        for call, message, field, request in [
            (client.get_queue, "GetQueue", "name", {"name": name}),
            (client.delete_queue, "DeleteQueue", "name", {"name": name}),
            (client.pause_queue, "PauseQueue", "name", {"name": name}),
            (client.resume_queue, "ResumeQueue", "name", {"name": name}),
            (client.purge_queue, "PurgeQueue", "name", {"name": name}),
            (client.create_task, "CreateTask", "parent", {"parent": name, "task": task}),
            (client.list_tasks, "ListTasks", "parent", {"parent": name}),
            (client.get_task, "GetTask", "name", {"name": f"{name}/tasks/t"}),
            (client.delete_task, "DeleteTask", "name", {"name": f"{name}/tasks/t"}),
            (client.run_task, "RunTask", "name", {"name": f"{name}/tasks/t"}),
        ]:
            with raises(exceptions.NotFound):
                call(request=request)
            shown(f"google.cloud.tasks.{version}.", f"{message}Request.{field}")
    client = world.tasks["v2"]
    same(client.get_location(request={"name": LOCATION}).name, LOCATION)
    shown("google.cloud.location.GetLocationRequest.", "name")


def first_page(call, request):
    """The items of one page, and the token of the next one."""
    answer = call(request=request)
    page = pb(next(iter(answer.pages)) if hasattr(answer, "pages") else answer)
    items = [field for field in page.DESCRIPTOR.fields if field.is_repeated][0].name
    return [getattr(one, "name", one) for one in getattr(page, items)], page.next_page_token


def lists(world):
    """A list has a page of this size, goes on where it ended, and is of this parent."""
    publisher, subscriber, schemas = world.publisher, world.subscriber, world.schemas
    rows = [
        (publisher.list_topics, f"{PUBSUB}ListTopics", "project", PROJECT, OTHER),
        (publisher.list_topic_subscriptions, f"{PUBSUB}ListTopicSubscriptions", "topic", TOPIC, None),
        (publisher.list_topic_snapshots, f"{PUBSUB}ListTopicSnapshots", "topic", TOPIC, None),
        (subscriber.list_subscriptions, f"{PUBSUB}ListSubscriptions", "project", PROJECT, OTHER),
        (subscriber.list_snapshots, f"{PUBSUB}ListSnapshots", "project", PROJECT, OTHER),
        (schemas.list_schemas, f"{PUBSUB}ListSchemas", "parent", PROJECT, OTHER),
        (schemas.list_schema_revisions, f"{PUBSUB}ListSchemaRevisions", "name", SCHEMA, None),
        (world.tasks["v2"].list_locations, "google.cloud.location.ListLocations", "name", PROJECT, OTHER),
    ]
    for version, client in world.tasks.items():
        prefix = f"google.cloud.tasks.{version}."
        rows.append((client.list_queues, f"{prefix}ListQueues", "parent", LOCATION, f"{OTHER}/locations/here"))
        rows.append((client.list_tasks, f"{prefix}ListTasks", "parent", f"{LOCATION}/queues/{version}-one", None))
    for call, message, field, parent, other in rows:
        one, token = first_page(call, {field: parent, "page_size": 1})
        two, _ = first_page(call, {field: parent, "page_size": 1, "page_token": token})
        same((len(one), len(two)), (1, 1))
        if "Revisions" not in message:  # Their names are one.
            assert one != two, f"{message}: {one} twice"
        if other:
            elsewhere, _ = first_page(call, {field: other})
            assert not {*one, *two} & set(elsewhere), f"{message}: {elsewhere}"
        shown(f"{message}Request.", field, "page_size", "page_token")


def views_and_filters(world):
    basic = world.schemas.get_schema(request={"name": SCHEMA, "view": "BASIC"})
    same((basic.definition, world.schemas.get_schema(name=SCHEMA).definition), ("", LATER))
    full = {"parent": PROJECT, "view": "FULL"}
    same({bool(one.definition) for one in world.schemas.list_schemas(request=full)}, {True})
    same({bool(one.definition) for one in world.schemas.list_schemas(parent=PROJECT)}, {False})
    full = {"name": SCHEMA, "view": "FULL"}
    same([one.definition for one in world.schemas.list_schema_revisions(request=full)], [LATER, AVRO])
    shown(PUBSUB, *(f"{it}Request.view" for it in ("GetSchema", "ListSchemas", "ListSchemaRevisions")))
    for version, client in world.tasks.items():
        parent = f"{LOCATION}/queues/{version}-one"
        name = f"{parent}/tasks/one"
        for view, body in ((1, b""), (2, b"hello")):
            same(client.get_task(request={"name": name, "response_view": view}).http_request.body, body)
            listed = client.list_tasks(request={"parent": parent, "response_view": view})
            same({one.http_request.body for one in listed}, {body})
            same(client.run_task(request={"name": name, "response_view": view}).http_request.body, body)
        client.resume_queue(name=f"{LOCATION}/queues/{version}-two")
        running = client.list_queues(request={"parent": LOCATION, "filter": "state: RUNNING"})
        names = [one.name for one in running]
        assert f"{LOCATION}/queues/{version}-two" in names and parent not in names, names
        prefix = f"google.cloud.tasks.{version}."
        shown(prefix, "GetTaskRequest.response_view", "ListTasksRequest.response_view", "RunTaskRequest.response_view")
        shown(prefix, "ListQueuesRequest.filter")


def updates(world):
    """Of what is sent, only what the mask names changes."""
    for version, client in world.tasks.items():
        sent = {"name": f"{LOCATION}/queues/{version}-one", "rate_limits": {"max_dispatches_per_second": 7}}
        sent["retry_config"] = {"max_attempts": 9}
        mask = {"paths": ["rate_limits.max_dispatches_per_second"]}
        got = client.update_queue(queue=sent, update_mask=mask)
        same((got.rate_limits.max_dispatches_per_second, got.retry_config.max_attempts), (7, 100))
        shown(f"google.cloud.tasks.{version}.UpdateQueueRequest.", "queue", "update_mask")
    labels = {"paths": ["labels"]}
    hour = {"message_retention_duration": datetime.timedelta(hours=1)}
    sent = {"name": TOPIC, "labels": {"a": "b"}, **hour}
    got = world.publisher.update_topic(request={"topic": sent, "update_mask": labels})
    same((dict(got.labels), bool(got.message_retention_duration)), ({"a": "b"}, False))
    sent = {"name": SUBSCRIPTION, "labels": {"a": "b"}, "ack_deadline_seconds": 77}
    got = world.subscriber.update_subscription(request={"subscription": sent, "update_mask": labels})
    same((dict(got.labels), got.ack_deadline_seconds), ({"a": "b"}, 10))
    sent = {"name": SNAPSHOT, "labels": {"c": "d"}, "expire_time": datetime.datetime.now(datetime.timezone.utc)}
    before = world.subscriber.get_snapshot(snapshot=SNAPSHOT).expire_time
    got = world.subscriber.update_snapshot(request={"snapshot": sent, "update_mask": labels})
    same((dict(got.labels), got.expire_time), ({"c": "d"}, before))
    shown(PUBSUB, *(f"Update{it}Request.update_mask" for it in ("Topic", "Subscription", "Snapshot")))


def schemas(world):
    client = world.schemas
    newest, oldest = [one.revision_id for one in client.list_schema_revisions(name=SCHEMA)]
    same(client.commit_schema(name=SCHEMA, schema={"type_": "AVRO", "definition": LATER}).definition, LATER)
    same(client.rollback_schema(name=SCHEMA, revision_id=oldest).definition, AVRO)
    if world.transport == "grpc":  # Google's client of REST leaves the id out: the path has it.
        client.delete_schema_revision(request={"name": SCHEMA, "revision_id": newest})
    else:
        client.delete_schema_revision(request={"name": f"{SCHEMA}@{newest}"})
    assert newest not in [one.revision_id for one in client.list_schema_revisions(name=SCHEMA)]
    shown(PUBSUB, "CommitSchemaRequest.schema", "RollbackSchemaRequest.revision_id")
    shown(PUBSUB, "DeleteSchemaRevisionRequest.revision_id")
    client.validate_schema(parent=PROJECT, schema={"type_": "AVRO", "definition": AVRO})
    with raises(exceptions.BadRequest):
        client.validate_schema(parent=PROJECT, schema={"type_": "AVRO", "definition": "{"})
    request = {"parent": PROJECT, "schema": {"type_": "AVRO", "definition": '"string"'}}
    client.validate_message(request={**request, "message": b"\x02x", "encoding": "BINARY"})
    client.validate_message(request={**request, "message": b'"x"', "encoding": "JSON"})
    with raises(exceptions.BadRequest):
        client.validate_message(request={**request, "message": b'"x"', "encoding": "BINARY"})
    shown(PUBSUB, "ValidateSchemaRequest.schema")
    shown(f"{PUBSUB}ValidateMessageRequest.", "schema", "message", "encoding")
    if world.transport == "grpc":  # Over REST a path without a project is none.
        for call in (client.validate_schema, client.validate_message):
            with raises(exceptions.InvalidArgument, "nonsense"):
                call(request={**request, "parent": "nonsense"})
    shown(PUBSUB, "ValidateSchemaRequest.parent", "ValidateMessageRequest.parent")


def policies(world):
    for resource, missing in ((TOPIC, f"{PROJECT}/topics/none"),):
        client = world.publisher
        policy = client.get_iam_policy(request={"resource": resource})
        policy.bindings.add(role="roles/x", members=["user:a@b.c"])
        client.set_iam_policy(request={"resource": resource, "policy": policy})
        same([it.role for it in client.get_iam_policy(request={"resource": resource}).bindings], ["roles/x"])
        for call in (client.get_iam_policy, client.set_iam_policy):
            with raises(exceptions.NotFound):
                call(request={"resource": missing})
        for name, granted in ((resource, ["a.b.c"]), (missing, [])):
            request = iam.TestIamPermissionsRequest(resource=name, permissions=["a.b.c"])
            same(list(client.test_iam_permissions(request=request).permissions), granted)
    policy = iam_policy.Policy(version=1, bindings=[{"role": "roles/y", "members": ["user:a@b.c"]}])
    mask = {"paths": ["version"]}
    got = world.publisher.set_iam_policy(request={"resource": TOPIC, "policy": policy, "update_mask": mask})
    same([it.role for it in got.bindings], ["roles/x"])
    shown(IAM, "SetIamPolicyRequest.update_mask")
    shown(IAM, "GetIamPolicyRequest.resource", "SetIamPolicyRequest.resource", "SetIamPolicyRequest.policy")
    shown(IAM, "TestIamPermissionsRequest.resource", "TestIamPermissionsRequest.permissions")


def messages(world):
    publisher, subscriber = world.publisher, world.subscriber
    name, empty = SUBSCRIPTION, f"{PROJECT}/subscriptions/two"
    ids = publisher.publish(request={"topic": TOPIC, "messages": [{"data": b"x"}, {"data": b"y"}]}).message_ids
    same(len(ids), 2)
    pull = lambda count: subscriber.pull(request={"subscription": name, "max_messages": count}).received_messages
    one, two = pull(1), pull(9)
    same((len(one), len(two)), (1, 1))
    at_once = {"subscription": name, "max_messages": 1, "return_immediately": True}
    same(len(subscriber.pull(request=at_once, timeout=PATIENCE_S).received_messages), 0)
    deadline = {"subscription": name, "ack_deadline_seconds": 0, "ack_ids": [two[0].ack_id]}
    subscriber.modify_ack_deadline(request=deadline)
    again = pull(9)
    same([it.message.message_id for it in again], [two[0].message.message_id])
    subscriber.acknowledge(subscription=name, ack_ids=[one[0].ack_id, again[0].ack_id])
    subscriber.seek(request={"subscription": name, "snapshot": SNAPSHOT})
    subscriber.acknowledge(subscription=name, ack_ids=[it.ack_id for it in (*pull(1), *pull(9))])
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    same(len(subscriber.pull(request={**at_once, "subscription": empty}).received_messages), 1)
    subscriber.seek(request={"subscription": empty, "time": later})
    same(len(subscriber.pull(request={**at_once, "subscription": empty}).received_messages), 0)
    push = {"push_endpoint": "http://127.0.0.1:9/"}
    subscriber.modify_push_config(subscription=empty, push_config=push)
    same(subscriber.get_subscription(subscription=empty).push_config.push_endpoint, push["push_endpoint"])
    shown(PUBSUB, "PublishRequest.messages", "PullRequest.max_messages", "PullRequest.return_immediately")
    shown(PUBSUB, "ModifyAckDeadlineRequest.ack_ids", "ModifyAckDeadlineRequest.ack_deadline_seconds")
    shown(PUBSUB, "AcknowledgeRequest.ack_ids", "SeekRequest.snapshot", "SeekRequest.time")
    shown(PUBSUB, "ModifyPushConfigRequest.push_config")


def stream(world):
    """Only gRPC has streams."""
    topic = f"{PROJECT}/topics/two"
    for number, limit in enumerate(({"max_outstanding_messages": 1}, {"max_outstanding_bytes": 1}, {})):
        # One for each: nobody says when a stream that was ended takes nothing any more.
        name = f"{PROJECT}/subscriptions/stream-{number}"
        world.subscriber.create_subscription(name=name, topic=topic, ack_deadline_seconds=600)
        world.publisher.publish(request={"topic": topic, "messages": [{"data": b"x" * 1000}] * 3})
        asked = queue.Queue()
        first = {"subscription": name, "stream_ack_deadline_seconds": 10, **limit}
        asked.put(types.StreamingPullRequest(**first))
        answers = world.subscriber.streaming_pull(requests=iter(asked.get, None), timeout=PATIENCE_S)
        came = (one for answer in answers for one in answer.received_messages)
        one = next(came)
        if limit:
            # Nothing else comes while it is outstanding; whoever pulls finds the others.
            pulled = world.subscriber.pull(request={"subscription": name, "max_messages": 9}).received_messages
            same(len(pulled), 2)
            world.subscriber.acknowledge(subscription=name, ack_ids=[it.ack_id for it in pulled])
        else:
            two, three = next(came), next(came)
            back = {"modify_deadline_ack_ids": [three.ack_id], "modify_deadline_seconds": [0]}
            asked.put(types.StreamingPullRequest(**back, ack_ids=[one.ack_id, two.ack_id]))
            same(next(came).message.message_id, three.message.message_id)
            # By the deadline of the stream, not that of the subscription.
            world.advance("11s")
            same(next(came).message.message_id, three.message.message_id)
        asked.put(None)
        answers.cancel()
    prefix = f"{PUBSUB}StreamingPullRequest."
    shown(prefix, "subscription", "ack_ids", "modify_deadline_ack_ids", "modify_deadline_seconds")
    shown(prefix, "stream_ack_deadline_seconds", "max_outstanding_messages", "max_outstanding_bytes")


def served(broker):
    """The fields of requests that the broker calls served; a resource that is a request comes back elsewhere."""
    with urllib.request.urlopen(f"http://{broker}/_semel/interface", timeout=PATIENCE_S) as answer:
        services = json.load(answer)["services"]
    for message in (message for service in services for message in service["messages"]):
        if message["name"].endswith("Request") and not message["name"].endswith("HttpRequest"):
            for field in message["fields"]:
                if field["standing"] == "served":
                    yield f"{message['name']}.{field['name']}"


def main(broker, transport):
    world = World(broker, transport)
    world.advance = lambda span: urllib.request.urlopen(
        f"http://{broker}/_semel/clock/advance", data=json.dumps({"by": span}).encode(), timeout=PATIENCE_S
    ).close()
    parts = [names, names_of_queues, lists, views_and_filters, updates, schemas, policies, messages]
    for part in [*parts, stream] if transport == "grpc" else parts:
        part(world)
        print(f"ok: {part.__name__}", flush=True)
    streamed = "StreamingPullRequest." if transport == "rest" else "none"
    left = sorted(name for name in set(served(broker)) - SHOWN if streamed not in name)
    check("every field of a request is shown to do something", left, [])
    unknown = SHOWN - set(served(broker)) - {f"{IAM}SetIamPolicyRequest.policy"}
    check("and nothing is shown that is not served", sorted(unknown), [])


if __name__ == "__main__":
    main(*sys.argv[1:])
