"""A Celery task that mails a welcome, unless it was mailed before. WRONG: it looks first, sends then, and notes it last.

Two deliveries at once both look before either has noted anything. And a worker that is killed after the mail leaves
no note of it.
"""

import json
import os
import urllib.request

import psycopg
from celery import Celery

DATABASE, MAILER = os.environ["DATABASE_URL"], os.environ["MAILER_URL"]

app = Celery("welcome", broker=os.environ["REDIS_URL"])


def mail(user):
    body = json.dumps({"user": user, "text": "Welcome!"}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{MAILER}/mails", body), timeout=5).close()


@app.task(acks_late=True, reject_on_worker_lost=True)
def welcome(user):
    with psycopg.connect(DATABASE, autocommit=True) as db:
        if db.execute("SELECT 1 FROM check_welcomed WHERE name = %s", (user,)).fetchone():
            return "mailed before"
        mail(user)
        db.execute("INSERT INTO check_welcomed VALUES (%s) ON CONFLICT DO NOTHING", (user,))
        return "mailed"
