"""A Celery task that pays a reward for an event. WRONG: the event is marked as seen before the work is done.

SET NX is atomic, so of two deliveries at once one works. But a worker that is killed behind the marker leaves an event
that was seen and not paid, and its next delivery is taken for a repeat.
"""

import os

import psycopg
import redis
from celery import Celery

DATABASE = os.environ["DATABASE_URL"]
SEEN = redis.Redis.from_url(os.environ["REDIS_URL"])
SEEN_S = 24 * 3600

app = Celery("rewards", broker=os.environ["REDIS_URL"])


@app.task(acks_late=True, reject_on_worker_lost=True)
def pay_reward(event, cents):
    if not SEEN.set(f"seen:{event}", 1, nx=True, ex=SEEN_S):
        return "seen before"
    with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
        db.execute("INSERT INTO seen_reward VALUES (%s, %s)", (event, cents))
    return "paid"
