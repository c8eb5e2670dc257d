"""Webhooks signed by their senders' own packages: `python webhooks.py http://HOST:PORT`.

The gate there has the routes /stripe, /standard and /svix, and knows the secrets NEW_SECRET and OLD_SECRET.
"""

import datetime
import json
import os
import sys
import urllib.error
import urllib.request

import standardwebhooks
import stripe
import svix.webhooks

NEW, OLD = os.environ["NEW_SECRET"], os.environ["OLD_SECRET"]
OTHER = "whsec_bm90IGEgc2VjcmV0IG5vdCBhIHNlY3JldA=="


def check(what, seen, wanted):
    if seen != wanted:
        sys.exit(f"{what}: {seen!r} instead of {wanted!r}")
    print(f"ok: {what}", flush=True)


def post(url, body, headers):
    request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        return refused.code


def now(ago=0):
    return datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=ago)


def by_stripe(event, body, secret, ago=0):
    timestamp = int(now(ago).timestamp())
    header = stripe.WebhookSignature.generate_signature_header(body, secret, timestamp)
    if not ago:
        stripe.WebhookSignature.verify_header(body.encode(), header, secret, tolerance=300)
    return {"Stripe-Signature": header}


def signed_by(package, prefix):
    def sign(event, body, secret, ago=0):
        webhook, time = package.Webhook(secret), now(ago)
        signature = webhook.sign(event, time, body)
        headers = {"id": event, "timestamp": str(int(time.timestamp())), "signature": signature}
        headers = {f"{prefix}-{name}": value for name, value in headers.items()}
        if not ago:
            webhook.verify(body, headers)
        return headers

    return sign


def event(sender, name):
    return json.dumps({"id": name, "object": "event", "type": "invoice.paid", "sender": sender, "sum": "9 €"})


def sender(gate, name, sign):
    url = f"{gate}/{name}"
    first, second = f"evt_{name}_1", f"evt_{name}_2"
    body = event(name, first)
    forged = body.replace("paid", "void")
    headers = sign(first, body, NEW)
    check(f"{name}: a forged body", post(url, forged, headers), 401)
    check(f"{name}: another secret", post(url, body, sign(first, body, OTHER)), 401)
    check(f"{name}: an old signature", post(url, body, sign(first, body, NEW, ago=400)), 401)
    check(f"{name}: the event", post(url, body, headers), 200)
    check(f"{name}: the event again", post(url, body, sign(first, body, NEW)), 200)
    body = event(name, second)
    check(f"{name}: the secret that is being replaced", post(url, body, sign(second, body, OLD)), 200)


def main():
    gate = sys.argv[1]
    sender(gate, "stripe", by_stripe)
    sender(gate, "standard", signed_by(standardwebhooks, "webhook"))
    sender(gate, "svix", signed_by(svix.webhooks, "svix"))


if __name__ == "__main__":
    main()
