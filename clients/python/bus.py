"""What the Pub/Sub programs share: topics, subscriptions and a way to receive."""

import contextlib
import json
import os
import queue
import time
import urllib.error
import urllib.request

from google.cloud import pubsub_v1
from google.protobuf.duration_pb2 import Duration

from handler import PATIENCE_S

PROJECT = "projects/shop"
# A nacked message comes again quickly, so that nobody waits.
QUICK = {"minimum_backoff": Duration(nanos=10_000_000), "maximum_backoff": Duration(nanos=50_000_000)}


class Bus:
    """Clients of the broker at HOST:PORT, found as Google's clients find an emulator."""

    def __init__(self, broker):
        os.environ["PUBSUB_EMULATOR_HOST"] = broker
        ordered = pubsub_v1.types.PublisherOptions(enable_message_ordering=True)
        self.publisher = pubsub_v1.PublisherClient(publisher_options=ordered)
        self.subscriber = pubsub_v1.SubscriberClient()

    def advance(self, span):
        """Puts the clock forward, where there is one that can be: Google's emulator has none."""
        body = json.dumps({"by": span}).encode()
        asked = urllib.request.Request(f"http://{os.environ['PUBSUB_EMULATOR_HOST']}/_semel/clock/advance", data=body)
        with contextlib.suppress(urllib.error.HTTPError):
            urllib.request.urlopen(asked, timeout=PATIENCE_S).close()

    def topic(self, short):
        return self.publisher.create_topic(name=f"{PROJECT}/topics/{short}").name

    def subscription(self, short, topic, **fields):
        name = f"{PROJECT}/subscriptions/{short}"
        request = {"name": name, "topic": topic, "retry_policy": QUICK, **fields}
        return self.subscriber.create_subscription(request=request).name

    def both(self, short, **fields):
        """A topic, and a subscription to it."""
        topic = self.topic(short)
        return topic, self.subscription(short, topic, **fields)

    def publish(self, topic, *bodies, key="", **attributes):
        """Publishes each, and returns the ids once they are accepted."""
        futures = [self.publisher.publish(topic, body, ordering_key=key, **attributes) for body in bodies]
        return [future.result(PATIENCE_S) for future in futures]

    def pull(self, subscription, count):
        """So many messages at most; fewer when no more are there."""
        request = {"subscription": subscription, "max_messages": count}
        return list(self.subscriber.pull(request=request, timeout=PATIENCE_S).received_messages)

    def pull_all(self, subscription, count):
        """Exactly so many messages, however many calls they take."""
        received = []
        end = time.monotonic() + PATIENCE_S
        while len(received) < count:
            assert time.monotonic() < end, f"{subscription}: {len(received)} messages came, not {count}"
            received += self.pull(subscription, count - len(received))
        return received

    def ack(self, subscription, received):
        self.subscriber.acknowledge(subscription=subscription, ack_ids=[one.ack_id for one in received])

    def nack(self, subscription, received):
        self.subscriber.modify_ack_deadline(
            subscription=subscription, ack_ids=[one.ack_id for one in received], ack_deadline_seconds=0
        )


class Stream:
    """A streaming pull; what comes waits here until somebody takes it."""

    def __init__(self, bus, subscription, **flow):
        self.messages = queue.Queue()
        control = pubsub_v1.types.FlowControl(**flow)
        self.future = bus.subscriber.subscribe(subscription, self.messages.put, flow_control=control)

    def take(self, count=1):
        return [self.messages.get(timeout=PATIENCE_S) for _ in range(count)]

    def end(self):
        self.future.cancel()
        self.future.result(PATIENCE_S)


def bodies(received):
    """Of pulled messages, or of streamed ones."""
    return [getattr(one, "message", one).data for one in received]
