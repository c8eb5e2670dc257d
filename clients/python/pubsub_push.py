"""Pub/Sub with Google's Python client, pushed: `python pubsub_push.py HOST:PORT`."""

import base64
import json
import sys

from bus import Bus, bodies
from handler import Handler, check

DEAD_LETTER_AFTER = 5
# What Pub/Sub takes for an acknowledgement. 102 is left out: it is no final answer in HTTP.
ACKNOWLEDGE = (200, 201, 202, 204)


def wrapped(bus, handler):
    url = handler.answering("/wrapped", 503, 203, 200)
    topic, subscription = bus.both("wrapped", push_config={"push_endpoint": url})
    [id] = bus.publish(topic, b"\x00\xffbytes", colour="red")
    first, *others = handler.requests("/wrapped", 3)
    check("method and type", (first.method, first.headers["Content-Type"]), ("POST", "application/json"))
    envelope = json.loads(first.body)
    message = envelope["message"]
    check("subscription", envelope["subscription"], subscription)
    check("no attempts without a policy", "deliveryAttempt" in envelope, False)
    check("body", base64.b64decode(message["data"]), b"\x00\xffbytes")
    check("attributes", message["attributes"], {"colour": "red"})
    check("id, in both spellings", (message["messageId"], message["message_id"]), (id, id))
    check("time, in both spellings", message["publishTime"], message["publish_time"])
    check("no key when there is none", "orderingKey" in message, False)
    ids = [json.loads(one.body)["message"]["messageId"] for one in others]
    check("after 503, and after 203, it comes again", ids, [id, id])


def acknowledged(bus, handler):
    for status in ACKNOWLEDGE:
        url = handler.answering(f"/ack-{status}", status)
        topic, _ = bus.both(f"ack-{status}", push_config={"push_endpoint": url})
        first, second = bus.publish(topic, b"one"), bus.publish(topic, b"two")
        seen = handler.requests(f"/ack-{status}", 2)
        ids = sorted(json.loads(one.body)["message"]["messageId"] for one in seen)
        check(f"{status} acknowledges", ids, sorted(first + second))


def dead_letter(bus, handler):
    graves, grave = bus.both("push-graves")
    url = handler.answering("/mortal", 500)
    policy = {"dead_letter_topic": graves, "max_delivery_attempts": DEAD_LETTER_AFTER}
    topic, _ = bus.both("push-mortal", push_config={"push_endpoint": url}, dead_letter_policy=policy)
    bus.publish(topic, b"hopeless")
    seen = [json.loads(one.body)["deliveryAttempt"] for one in handler.requests("/mortal", 5)]
    check("attempts are counted", seen, [1, 2, 3, 4, 5])
    [letter] = bus.pull_all(grave, 1)
    check("then it is a letter", bodies([letter]), [b"hopeless"])
    count = letter.message.attributes["CloudPubSubDeadLetterSourceDeliveryCount"]
    check("with its count", count, "5")
    check("and it is pushed no more", len(handler.requests("/mortal", 5)), 5)


def unwrapped(bus, handler):
    url = handler.answering("/plain")
    config = {"push_endpoint": url, "no_wrapper": {"write_metadata": True}}
    topic, subscription = bus.both("plain", push_config=config, enable_message_ordering=True)
    [id] = bus.publish(topic, b"\x00raw", key="k", colour="red")
    [seen] = handler.requests("/plain")
    check("the body is the message", seen.body, b"\x00raw")
    names = ("subscription-name", "message-id", "ordering-key")
    given = [seen.headers[f"x-goog-pubsub-{name}"] for name in names]
    check("metadata are headers", given, [subscription, id, "k"])
    check("so is the time", seen.headers["x-goog-pubsub-publish-time"].startswith("20"), True)
    check("so are attributes", seen.headers["colour"], "red")
    bare = handler.answering("/bare")
    bus.both("bare", push_config={"push_endpoint": bare, "no_wrapper": {"write_metadata": False}})
    bus.publish("projects/shop/topics/bare", b"bare", colour="red")
    [seen] = handler.requests("/bare")
    left = [name for name in seen.headers if name.lower().startswith("x-goog") or name == "colour"]
    check("without metadata there is only the body", (seen.body, left), (b"bare", []))


def ordering(bus, handler):
    url = handler.answering("/ordered", 200, 200, 503, 200)
    topic, _ = bus.both("push-ordered", push_config={"push_endpoint": url}, enable_message_ordering=True)
    bus.publish(topic, *(b"%d" % number for number in range(6)), key="k")
    seen = [base64.b64decode(json.loads(one.body)["message"]["data"]) for one in handler.requests("/ordered", 7)]
    check("a nack holds the key", seen, [b"0", b"1", b"2", b"2", b"3", b"4", b"5"])


def from_pull_to_push(bus, handler):
    topic, subscription = bus.both("turned")
    bus.publish(topic, b"waits")
    url = handler.answering("/turned")
    bus.subscriber.modify_push_config(subscription=subscription, push_config={"push_endpoint": url})
    handler.requests("/turned")
    print("ok: what waited to be pulled is pushed")
    bus.subscriber.modify_push_config(subscription=subscription, push_config={})
    bus.publish(topic, b"again")
    check("and pulled again", bodies(bus.pull_all(subscription, 1)), [b"again"])


def main():
    bus, handler = Bus(sys.argv[1]), Handler()
    for part in (wrapped, acknowledged, dead_letter, unwrapped, ordering, from_pull_to_push):
        part(bus, handler)


if __name__ == "__main__":
    main()
