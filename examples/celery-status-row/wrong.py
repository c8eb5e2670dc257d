"""A Celery task that ships an order and keeps its status in a row. WRONG: nobody takes over what says "shipping".

The row is looked at and then changed, so two deliveries at once both see "new". And a worker that is killed in between
leaves "shipping" behind: the delivery that should heal it takes the order for one that is at work, and is acknowledged.
"""

import os

import psycopg
from celery import Celery

DATABASE = os.environ["DATABASE_URL"]

app = Celery("orders", broker=os.environ["REDIS_URL"])


@app.task(acks_late=True, reject_on_worker_lost=True)
def ship(order):
    with psycopg.connect(DATABASE, autocommit=True) as db:
        (status,) = db.execute("SELECT status FROM status_orders WHERE name = %s", (order,)).fetchone()
        if status != "new":
            return status
        db.execute("UPDATE status_orders SET status = 'shipping' WHERE name = %s", (order,))
        db.execute("INSERT INTO status_parcel VALUES (%s)", (order,))
        db.execute("UPDATE status_orders SET status = 'shipped' WHERE name = %s", (order,))
        return "shipped"
