"""A Celery task that makes a payment, once: the status in its own transaction, the charge under a key.

semel.once() is true the first time, and belongs to the transaction that writes the status: a worker that dies leaves
neither, and the next one does both. It may then charge a second time, under the same key: the payment gateway, which
keeps keys, answers and does not charge. A second worker at the same moment waits for the first one's COMMIT.
"""

import json
import os
import sys
import urllib.request

import celery
import psycopg

DATABASE, BANK = os.environ["DATABASE_URL"], os.environ["BANK_URL"]

app = celery.Celery("payment", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"])


def charge(payment, cents):
    body = json.dumps({"payment": payment, "cents": cents}).encode()
    order = urllib.request.Request(f"{BANK}/charges", data=body, headers={"Idempotency-Key": payment})
    urllib.request.urlopen(order, timeout=5).close()


@app.task(name="pay", acks_late=True)
def pay(payment, cents):
    with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
        first = db.execute("SELECT semel.once(%s)", (f"payment {payment}",)).fetchone()[0]
        if first:
            charge(payment, cents)
            db.execute("UPDATE payments SET status = 'paid' WHERE id = %s", (payment,))


if __name__ == "__main__":  # what `celery worker -P threads -Q QUEUE` does, without its slow start
    quick = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
    app.Worker(queues=sys.argv[1:], pool="threads", concurrency=8, **quick).start()
