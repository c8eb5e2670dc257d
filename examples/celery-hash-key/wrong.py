"""A Celery task that books an invoice. WRONG: it remembers what it did under a hash of all its arguments.

The hash is a good one, the same in every process. But the memory is looked at before the work and written after it, so
two deliveries at once both book, and so does the one after a crash. And a hash of *all* arguments does not say what the
work is: the same invoice with a corrected amount, or with one argument more after a deploy, is other work.
"""

import functools
import hashlib
import json
import os

import psycopg
import redis
from celery import Celery

DATABASE = os.environ["DATABASE_URL"]
MEMORY = redis.Redis.from_url(os.environ["REDIS_URL"])
REMEMBERED_S = 24 * 3600

app = Celery("books", broker=os.environ["REDIS_URL"])


def idempotent(function):
    """Returns the first result again when the arguments are the same."""

    @functools.wraps(function)
    def remembered(*args, **kwargs):
        arguments = json.dumps([args, kwargs], sort_keys=True)
        key = f"{function.__name__}:{hashlib.sha256(arguments.encode()).hexdigest()}"
        known = MEMORY.get(key)
        if known is not None:
            return json.loads(known)
        result = function(*args, **kwargs)
        MEMORY.set(key, json.dumps(result), ex=REMEMBERED_S)
        return result

    return remembered


@app.task(acks_late=True, reject_on_worker_lost=True)
@idempotent
def book(invoice, cents):
    with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
        db.execute("INSERT INTO hash_booking VALUES (%s, %s)", (invoice, cents))
    return "booked"
