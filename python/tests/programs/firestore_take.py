"""Takes a lamp from stock, and kills itself at a moment: firestore_take.py KIND PROJECT KEY FENCE MOMENT"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

import semel.firestore

kind, project, key, fence, die_at = sys.argv[1:]
db = firestore.Client(project=project, credentials=AnonymousCredentials())
lamp = db.document("stock/lamp")


def reached(moment: str) -> None:
    if moment == die_at:
        os.kill(os.getpid(), signal.SIGKILL)


def take(writer: Any) -> None:
    found = lamp.get(transaction=writer if kind == "transaction" else None)
    reached("read")
    semel.firestore.complete(writer, key, fence)
    writer.update(lamp, {"n": found.get("n") - 1}, option=db.write_option(last_update_time=found.update_time))
    reached("filled")


if kind == "transaction":
    firestore.transactional(take)(db.transaction())
else:
    semel.firestore.run_in_batch(db, take)
reached("committed")
