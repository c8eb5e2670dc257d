"""A Celery task that books an invoice. RIGHT: once per invoice.

`once` names the argument that says what the work is; the others are compared, and an invoice that comes again with
another amount is refused instead of booked. The booking and its record are committed together.
"""

import os

import psycopg
import semel
import semel.celery
from celery import Celery

DATABASE = os.environ["DATABASE_URL"]

app = Celery("books", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"], task_cls="semel.celery:Task")
semel.celery.setup(app, semel.Semel(DATABASE, namespace="books"))

# A short lease, so that a trial does not wait long for a run that was killed.
ONCE = {"key": "invoice", "completes": "handler", "lease": "500ms"}


@app.task(once=ONCE, acks_late=True, reject_on_worker_lost=True, time_limit=60)
def book(invoice, cents):
    with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
        db.execute("INSERT INTO hash_booking VALUES (%s, %s)", (invoice, cents))
        return semel.complete(db, "booked")
