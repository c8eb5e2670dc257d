"""A Celery task that mails a welcome. RIGHT, with a mail service that keeps no keys: one mail, or a person looks.

A run that was killed may have sent the mail or not, and nobody can tell. It is not run again: it is parked, and the
message is kept as a letter.
"""

import json
import os
import urllib.request

import semel.celery
from celery import Celery

MAILER = os.environ["MAILER_URL"]

app = Celery("welcome", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"], task_cls="semel.celery:Task")
semel.celery.setup(app, semel.Semel(os.environ["DATABASE_URL"], namespace="welcome"))

# A short lease, so that a trial does not wait long for a run that was killed.
ONCE = {"key": "user", "in_doubt": "park", "lease": "500ms"}


@app.task(once=ONCE, acks_late=True, reject_on_worker_lost=True, time_limit=60)
def welcome(user):
    body = json.dumps({"user": user, "text": "Welcome!"}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{MAILER}/mails", body), timeout=5).close()
    return "mailed"
