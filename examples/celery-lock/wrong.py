"""A Celery task that enters an order elsewhere, one worker at a time. WRONG: a lock is taken for idempotency.

A lock keeps two runs from overlapping; it does not remember that there was one. A repeat after the first has ended gets
the lock and enters the order again. And a worker that is killed leaves the lock behind: the delivery that should heal
it takes the order for one that is being entered, and is acknowledged.
"""

import json
import os
import urllib.request

import redis
from celery import Celery

CRM = os.environ["CRM_URL"]
LOCKS = redis.Redis.from_url(os.environ["REDIS_URL"])
LOCK_S = 60  # longer than the work ever takes

app = Celery("orders", broker=os.environ["REDIS_URL"])


@app.task(acks_late=True, reject_on_worker_lost=True)
def enter(order):
    lock = f"lock:{order}"
    if not LOCKS.set(lock, "mine", nx=True, ex=LOCK_S):
        return "another worker enters it"
    try:
        body = json.dumps({"order": order}).encode()
        urllib.request.urlopen(urllib.request.Request(f"{CRM}/entries", body), timeout=5).close()
        return "entered"
    finally:
        LOCKS.delete(lock)
