"""A Celery task that adds the points of a round to a player's score. WRONG: an upsert is not idempotent when it adds.

It is one atomic statement and makes no second row, so it looks safe. But each delivery of the same round adds its
points once more, and the row cannot tell: a sum does not remember what it was made of.
"""

import os

import psycopg
from celery import Celery

DATABASE = os.environ["DATABASE_URL"]

app = Celery("game", broker=os.environ["REDIS_URL"])


@app.task(acks_late=True, reject_on_worker_lost=True)
def add_points(round_id, player, points):
    with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
        db.execute(
            "INSERT INTO upsert_score VALUES (%s, %s) "
            "ON CONFLICT (player) DO UPDATE SET points = upsert_score.points + EXCLUDED.points",
            (player, points),
        )
