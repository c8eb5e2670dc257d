"""A Celery task that pays a reward for an event. RIGHT: that it was paid and the reward are committed together.

There is no right order of a marker and the work: before loses it, after does it twice. Both in one transaction is none.
"""

import os

import psycopg
import semel
import semel.celery
from celery import Celery

DATABASE = os.environ["DATABASE_URL"]

app = Celery("rewards", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"], task_cls="semel.celery:Task")
semel.celery.setup(app, semel.Semel(DATABASE, namespace="rewards"))

# A short lease, so that a trial does not wait long for a run that was killed.
ONCE = {"key": "event", "completes": "handler", "lease": "500ms"}


@app.task(once=ONCE, acks_late=True, reject_on_worker_lost=True, time_limit=60)
def pay_reward(event, cents):
    with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
        db.execute("INSERT INTO seen_reward VALUES (%s, %s)", (event, cents))
        return semel.complete(db, "paid")
