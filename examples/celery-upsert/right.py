"""A Celery task that adds the points of a round to a player's score. RIGHT: once per round.

The same upsert; its transaction ends with semel.complete, so the sum and the memory of the round are committed
together, or neither is.
"""

import os

import psycopg
import semel
import semel.celery
from celery import Celery

DATABASE = os.environ["DATABASE_URL"]

app = Celery("game", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"], task_cls="semel.celery:Task")
semel.celery.setup(app, semel.Semel(DATABASE, namespace="game"))

# A short lease, so that a trial does not wait long for a run that was killed.
ONCE = {"key": "round_id", "completes": "handler", "lease": "500ms"}


@app.task(once=ONCE, acks_late=True, reject_on_worker_lost=True, time_limit=60)
def add_points(round_id, player, points):
    with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
        db.execute(
            "INSERT INTO upsert_score VALUES (%s, %s) "
            "ON CONFLICT (player) DO UPDATE SET points = upsert_score.points + EXCLUDED.points",
            (player, points),
        )
        return semel.complete(db, "added")
