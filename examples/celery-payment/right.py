"""A Celery task that makes a payment, with retries. RIGHT: charged once, one receipt, and a status that says so.

Each call to the gateway is a step: a step that was done is not done again, and one that a killed worker left in doubt
is done again under the same key, which the gateway knows. The status and the record of the run are committed together.
A lock is not needed: one run at a time has the lease.
"""

import json
import os
import urllib.error
import urllib.request

import psycopg
import semel
import semel.celery
from celery import Celery

DATABASE, BANK = os.environ["DATABASE_URL"], os.environ["BANK_URL"]

app = Celery("payments", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"], task_cls="semel.celery:Task")
semel.celery.setup(app, semel.Semel(DATABASE, namespace="payments"))

# A short lease, so that a trial does not wait long for a run that was killed.
ONCE = {"key": "payment", "completes": "handler", "lease": "500ms"}


class GatewayDown(Exception):
    """Try again later."""


def ask(path, key, payment, **order):
    body = json.dumps({"payment": payment, **order}).encode()
    request = urllib.request.Request(f"{BANK}{path}", body, {"Idempotency-Key": key})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return json.load(answer)["reference"]
    except urllib.error.HTTPError as error:
        raise GatewayDown(f"{path}: {error}") from None


@app.task(once=ONCE, acks_late=True, reject_on_worker_lost=True, time_limit=60,
          autoretry_for=(GatewayDown,), max_retries=5, default_retry_delay=0.2)  # fmt: skip
def process_payment(payment, cents):
    reference = semel.step("charge", lambda step: ask("/charges", step.key, payment, cents=cents))
    semel.step("receipt", lambda step: ask("/receipts", step.key, payment))
    with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
        db.execute("UPDATE payments SET status = 'paid' WHERE id = %s", (payment,))
        return semel.complete(db, reference)
