"""A Celery task that makes a payment: a lock, a status, retries, late acknowledgement. WRONG: and still paid twice.

The lock keeps others away and the status keeps a paid payment from being paid again. But the status is written after
the charge: a worker that is killed between the two leaves a charge that nobody knows of, and the retry charges again.
"""

import json
import os
import urllib.error
import urllib.request

import psycopg
import redis
from celery import Celery

DATABASE, BANK = os.environ["DATABASE_URL"], os.environ["BANK_URL"]
LOCKS = redis.Redis.from_url(os.environ["REDIS_URL"])
LOCK_MS = 1000

app = Celery("payments", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"])


class GatewayDown(Exception):
    """Try again later."""


def ask(path, payment, **order):
    body = json.dumps({"payment": payment, **order}).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{BANK}{path}", body), timeout=5) as answer:
            return json.load(answer)["reference"]
    except urllib.error.HTTPError as error:
        raise GatewayDown(f"{path}: {error}") from None


@app.task(bind=True, acks_late=True, reject_on_worker_lost=True, max_retries=5)
def process_payment(self, payment, cents):
    lock = f"lock:{payment}"
    if not LOCKS.set(lock, "mine", nx=True, px=LOCK_MS):
        raise self.retry(exc=GatewayDown("another worker pays it"), countdown=1)
    try:
        return pay(payment, cents)
    except GatewayDown as down:
        raise self.retry(exc=down, countdown=0.2 * 2**self.request.retries)
    finally:
        LOCKS.delete(lock)


def pay(payment, cents):
    with psycopg.connect(DATABASE, autocommit=True) as db:
        (status,) = db.execute("SELECT status FROM payments WHERE id = %s", (payment,)).fetchone()
        if status == "paid":
            return "paid before"
        ask("/charges", payment, cents=cents)
        db.execute("UPDATE payments SET status = 'paid' WHERE id = %s", (payment,))
    ask("/receipts", payment)
    return "paid"
