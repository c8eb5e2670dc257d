"""A Celery task that enters an order elsewhere. RIGHT: what was entered is remembered, and a lease stands for the lock.

The lease is renewed while the run goes on and lapses soon after a crash; a copy that comes meanwhile is put off, not
acknowledged. The run after a crash enters the order under the same key, which is known there.
"""

import json
import os
import urllib.request

import semel
import semel.celery
from celery import Celery

CRM, REDIS = os.environ["CRM_URL"], os.environ["REDIS_URL"]

app = Celery("orders", broker=REDIS, backend=REDIS, task_cls="semel.celery:Task")
semel.celery.setup(app, semel.Semel(REDIS, namespace="orders"))

# A short lease, so that a trial does not wait long for a run that was killed.
ONCE = {"key": "order", "lease": "500ms"}


def add_entry(order, key):
    body = json.dumps({"order": order}).encode()
    request = urllib.request.Request(f"{CRM}/entries", body, {"Idempotency-Key": key})
    urllib.request.urlopen(request, timeout=5).close()


@app.task(once=ONCE, acks_late=True, reject_on_worker_lost=True, time_limit=60)
def enter(order):
    semel.step("enter", lambda step: add_entry(order, step.key))
    return "entered"
