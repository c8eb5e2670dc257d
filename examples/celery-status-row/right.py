"""A Celery task that ships an order and keeps its status in a row. RIGHT: the row says only what is so.

Who is at work is not a matter of the row: semel keeps a lease, which lapses after a crash. The parcel, the status and
the record of the run are committed together; a run that was overtaken is refused and rolls back.
"""

import os

import psycopg
import semel
import semel.celery
from celery import Celery

DATABASE = os.environ["DATABASE_URL"]

app = Celery("orders", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"], task_cls="semel.celery:Task")
semel.celery.setup(app, semel.Semel(DATABASE, namespace="orders"))

# A short lease, so that a trial does not wait long for a run that was killed.
ONCE = {"key": "order", "completes": "handler", "lease": "500ms"}


@app.task(once=ONCE, acks_late=True, reject_on_worker_lost=True, time_limit=60)
def ship(order):
    with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
        db.execute("INSERT INTO status_parcel VALUES (%s)", (order,))
        db.execute("UPDATE status_orders SET status = 'shipped' WHERE name = %s", (order,))
        return semel.complete(db, "shipped")
