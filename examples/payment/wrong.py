"""A Celery task that makes a payment: a lock, a status, a payment gateway. Wrong: three guards, and still paid twice.

The lock keeps others away, and lasts long enough. The status keeps a paid payment from being paid again. But it is
written after the charge: a worker that dies between the two leaves a charge that nobody knows of, and with acks_late
the task is delivered again.
"""

import json
import os
import sys
import urllib.request

import celery
import psycopg
import redis

DATABASE, BANK = os.environ["DATABASE_URL"], os.environ["BANK_URL"]
LOCKS = redis.Redis.from_url(os.environ["REDIS_URL"])
LOCK_MS = 1000

app = celery.Celery("payment", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"])


class Busy(Exception):
    """Another worker is at it: send it again later."""


def charge(payment, cents):
    body = json.dumps({"payment": payment, "cents": cents}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{BANK}/charges", data=body), timeout=5).close()


@app.task(name="pay", acks_late=True)
def pay(payment, cents):
    if not LOCKS.set(f"lock:{payment}", "mine", nx=True, px=LOCK_MS):
        raise Busy(payment)
    try:
        with psycopg.connect(DATABASE, autocommit=True) as db:
            (status,) = db.execute("SELECT status FROM payments WHERE id = %s", (payment,)).fetchone()
            if status == "open":
                charge(payment, cents)
                db.execute("UPDATE payments SET status = 'paid' WHERE id = %s", (payment,))
    finally:
        LOCKS.delete(f"lock:{payment}")


if __name__ == "__main__":  # what `celery worker -P threads -Q QUEUE` does, without its slow start
    quick = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
    app.Worker(queues=sys.argv[1:], pool="threads", concurrency=8, **quick).start()
