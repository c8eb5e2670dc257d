"""A Celery task that mails a welcome. RIGHT, with a mail service that keeps keys: one mail.

Of two deliveries at once one runs, and a repeat hears what the first returned. A run that was killed may have sent
the mail or not; the next one sends it again under the step's key, which is the same in every run, and the mail service
sends nothing twice under one key.
"""

import json
import os
import urllib.request

import semel
import semel.celery
from celery import Celery

MAILER = os.environ["MAILER_URL"]

app = Celery("welcome", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"], task_cls="semel.celery:Task")
semel.celery.setup(app, semel.Semel(os.environ["DATABASE_URL"], namespace="welcome"))

# A short lease, so that a trial does not wait long for a run that was killed.
ONCE = {"key": "user", "lease": "500ms"}


def mail(user, key):
    body = json.dumps({"user": user, "text": "Welcome!"}).encode()
    request = urllib.request.Request(f"{MAILER}/mails", body, {"Idempotency-Key": key})
    urllib.request.urlopen(request, timeout=5).close()


@app.task(once=ONCE, acks_late=True, reject_on_worker_lost=True, time_limit=60)
def welcome(user):
    semel.step("mail", lambda step: mail(user, step.key))
    return "mailed"
