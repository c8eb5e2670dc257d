"""Pub/Sub with Google's Python client, pulled and streamed: `python pubsub.py HOST:PORT`."""

import datetime
import sys

from google.api_core.exceptions import AlreadyExists, InvalidArgument, NotFound
from google.cloud.pubsub_v1.subscriber.exceptions import AcknowledgeError
from google.protobuf.field_mask_pb2 import FieldMask

from bus import PROJECT, Bus, Stream, bodies
from handler import PATIENCE_S, check, refused

DEAD_LETTER_AFTER = 5
JUST_BEFORE = datetime.timedelta(microseconds=100)


def admin(bus):
    topic = bus.topic("admin")
    check("a topic is created and got", bus.publisher.get_topic(topic=topic).name, topic)
    with refused("the same topic again", AlreadyExists):
        bus.topic("admin")
    with refused("a topic that is not there", NotFound):
        bus.publish(f"{PROJECT}/topics/none", b"x")
    with refused("a subscription to nothing", NotFound):
        bus.subscription("nothing", f"{PROJECT}/topics/none")
    with refused("a name too short", InvalidArgument):
        bus.topic("t")
    subscription = bus.subscription("admin", topic)
    got = bus.subscriber.get_subscription(subscription=subscription)
    check("its deadline is Google's default", got.ack_deadline_seconds, 10)
    with refused("the same subscription again", AlreadyExists):
        bus.subscription("admin", topic)
    changed = bus.subscriber.update_subscription(
        subscription={"name": subscription, "ack_deadline_seconds": 77, "labels": {"a": "b"}},
        update_mask=FieldMask(paths=["ack_deadline_seconds"]),
    )
    check("the mask says what an update changes", (changed.ack_deadline_seconds, dict(changed.labels)), (77, {}))
    names = [bus.topic(f"page-{number}") for number in range(4)] + [topic]
    pages = list(bus.publisher.list_topics(request={"project": PROJECT, "page_size": 2}).pages)
    check("topics come in pages", max(len(page.topics) for page in pages), 2)
    check("every topic is listed once", sorted(t.name for p in pages for t in p.topics), sorted(names))
    check("a topic knows its subscriptions", list(bus.publisher.list_topic_subscriptions(topic=topic)), [subscription])
    bus.publisher.delete_topic(topic=topic)
    left = bus.subscriber.get_subscription(subscription=subscription)
    check("a subscription outlives its topic", left.topic, "_deleted-topic_")
    bus.subscriber.delete_subscription(subscription=subscription)
    with refused("a deleted subscription", NotFound):
        bus.pull(subscription, 1)


def pull(bus):
    topic, subscription = bus.both("pull")
    ids = bus.publish(topic, b"one", b"two", b"three", colour="red")
    check("each has an id of its own", len(set(ids)), 3)
    received = bus.pull_all(subscription, 3)
    check("all come", sorted(bodies(received)), [b"one", b"three", b"two"])
    check("with the ids they were given", {one.message.message_id for one in received}, set(ids))
    check("with attributes", {one.message.attributes["colour"] for one in received}, {"red"})
    check("without a policy nobody counts attempts", {one.delivery_attempt for one in received}, {0})
    bus.nack(subscription, received[:1])
    again = bus.pull_all(subscription, 1)
    check("a nacked message comes again", again[0].message.message_id, received[0].message.message_id)
    bus.ack(subscription, again + received[1:])
    bus.publish(topic, b"last")
    check("what was acknowledged does not", bodies(bus.pull_all(subscription, 1)), [b"last"])


def dead_letter(bus):
    graves, grave = bus.both("graves")
    topic, subscription = bus.both(
        "mortal",
        dead_letter_policy={"dead_letter_topic": graves, "max_delivery_attempts": DEAD_LETTER_AFTER},
    )
    [id] = bus.publish(topic, b"hopeless", order="A-1")
    attempts = []
    for _ in range(DEAD_LETTER_AFTER):
        received = bus.pull_all(subscription, 1)
        attempts.append(received[0].delivery_attempt)
        bus.nack(subscription, received)
    check("attempts are counted", attempts, [1, 2, 3, 4, 5])
    [letter] = bus.pull_all(grave, 1)
    bus.ack(grave, [letter])
    message, given = letter.message, dict(letter.message.attributes)
    check("the body is kept", message.data, b"hopeless")
    check("the copy has an id of its own", message.message_id != id, True)
    check("own attributes are kept", given.pop("order"), "A-1")
    check("the count", given.pop("CloudPubSubDeadLetterSourceDeliveryCount"), "5")
    check("the subscription", given.pop("CloudPubSubDeadLetterSourceSubscription"), "mortal")
    check("its project", given.pop("CloudPubSubDeadLetterSourceSubscriptionProject"), "shop")
    check("the time", given.pop("CloudPubSubDeadLetterSourceTopicPublishTime").endswith("+00:00"), True)
    bus.publish(topic, b"next")
    received = bus.pull_all(subscription, 1)
    check("the subscription goes on without it", bodies(received), [b"next"])
    bus.ack(subscription, received)


def stream(bus):
    topic, subscription = bus.both("stream")
    one = Stream(bus, subscription)
    bus.publish(topic, *(b"%d" % number for number in range(20)))
    seen = one.take(20)
    check("all are streamed", sorted(int(body) for body in bodies(seen)), list(range(20)))
    seen[0].nack()
    again = one.take()[0]
    check("a nacked message comes again", again.message_id, seen[0].message_id)
    for message in [again, *seen[1:]]:
        message.ack()
    one.end()
    bus.publish(topic, b"last")
    two = Stream(bus, subscription)
    check("acknowledgements outlive the stream", bodies(two.take()), [b"last"])
    two.end()


def flow_control(bus):
    topic, subscription = bus.both("flow")
    slow = Stream(bus, subscription, max_messages=3)
    bus.publish(topic, *(b"%d" % number for number in range(10)))
    held = slow.take(3)
    quick = Stream(bus, subscription)
    rest = quick.take(7)
    check("what a full stream leaves, another takes", len(set(bodies(held + rest))), 10)
    check("a full stream gets no more", slow.messages.empty(), True)
    for message in held + rest:
        message.ack()
    slow.end()
    quick.end()


def share(bus):
    topic, subscription = bus.both("share")
    streams = [Stream(bus, subscription, max_messages=50) for _ in range(2)]
    ids = bus.publish(topic, *(b"%d" % number for number in range(100)))
    # Each holds what it got, so the streams must have 50 each.
    seen = [stream.take(50) for stream in streams]
    check("two streams share", sorted(m.message_id for half in seen for m in half), sorted(ids))
    for message in seen[0] + seen[1]:
        message.ack()
    for stream in streams:
        stream.end()


def ordering(bus):
    topic, subscription = bus.both("ordered", enable_message_ordering=True)
    bus.publish(topic, *(f"n{number}".encode() for number in range(3)), key="nacked")
    first = bus.pull_all(subscription, 1)
    bus.nack(subscription, first)
    again = bus.pull_all(subscription, 1)
    check("a nacked message keeps its place", bodies(first + again), [b"n0", b"n0"])
    bus.nack(subscription, again)
    for key in ("a", "b"):
        bus.publish(topic, *(f"{key}{number}".encode() for number in range(10)), key=key)
    stream = Stream(bus, subscription)
    seen = {"a": [], "b": [], "nacked": []}
    for _ in range(23):
        [message] = stream.take()
        seen[message.ordering_key].append(message.data.decode())
        message.ack()
    stream.end()
    for key in ("a", "b"):
        check(f"key {key} is in order", seen[key], [f"{key}{number}" for number in range(10)])
    check("so is the one that was nacked", seen["nacked"], ["n0", "n1", "n2"])


def filtered(bus):
    topic = bus.topic("filtered")
    red = bus.subscription("red", topic, filter='attributes.colour = "red"')
    others = bus.subscription("others", topic, filter='NOT attributes:colour OR hasPrefix(attributes.colour, "gr")')
    for colour in ("red", "green", "blue"):
        bus.publish(topic, colour.encode(), colour=colour)
    bus.publish(topic, b"none")
    check("a filter lets its own through", bodies(bus.pull_all(red, 1)), [b"red"])
    check("so does another", sorted(bodies(bus.pull_all(others, 2))), [b"green", b"none"])
    bus.publish(topic, b"red again", colour="red")
    check("and nothing else", bodies(bus.pull_all(red, 1)), [b"red again"])
    with refused("a filter that is none", InvalidArgument):
        bus.subscription("wrong", topic, filter="colour is red")


def exactly_once(bus):
    topic, subscription = bus.both("once", enable_exactly_once_delivery=True)
    stream = Stream(bus, subscription)
    [id] = bus.publish(topic, b"once")
    [first] = stream.take()
    check("a nack is confirmed", first.nack_with_response().result(PATIENCE_S).name, "SUCCESS")
    [second] = stream.take()
    check("it comes again", (second.message_id, second.ack_id != first.ack_id), (id, True))
    check("an ack is confirmed", second.ack_with_response().result(PATIENCE_S).name, "SUCCESS")
    with refused("a second ack", AcknowledgeError, "INVALID_ACK_ID"):
        second.ack_with_response().result(PATIENCE_S)
    stream.end()


def seek(bus):
    topic, subscription = bus.both("seek", retain_acked_messages=True)
    bus.publish(topic, b"before")
    bus.ack(subscription, bus.pull_all(subscription, 1))
    snapshot = bus.subscriber.create_snapshot(name=f"{PROJECT}/snapshots/shot", subscription=subscription).name
    ids = bus.publish(topic, b"one", b"two")
    bus.ack(subscription, bus.pull_all(subscription, 2))
    bus.subscriber.seek(request={"subscription": subscription, "snapshot": snapshot})
    received = bus.pull_all(subscription, 2)
    check("a snapshot brings back what came after it", sorted(bodies(received)), [b"one", b"two"])
    check("with the same ids", sorted(one.message.message_id for one in received), sorted(ids))
    began = min(one.message.publish_time for one in received)
    bus.ack(subscription, received)
    bus.subscriber.seek(request={"subscription": subscription, "time": began - JUST_BEFORE})
    received = bus.pull_all(subscription, 2)
    check("so does a time", sorted(bodies(received)), [b"one", b"two"])
    bus.nack(subscription, received)
    now = datetime.datetime.now(datetime.UTC)
    bus.subscriber.seek(request={"subscription": subscription, "time": now})
    bus.publish(topic, b"after")
    check("a seek to now leaves what comes later", bodies(bus.pull_all(subscription, 1)), [b"after"])
    listed = list(bus.subscriber.list_snapshots(project=PROJECT))
    check("snapshots are listed", [one.name for one in listed], [snapshot])
    bus.subscriber.delete_snapshot(snapshot=snapshot)
    check("and deleted", list(bus.subscriber.list_snapshots(project=PROJECT)), [])


def main():
    bus = Bus(sys.argv[1])
    for part in (admin, pull, dead_letter, stream, flow_control, share, ordering, filtered, exactly_once, seek):
        part(bus)


if __name__ == "__main__":
    main()
