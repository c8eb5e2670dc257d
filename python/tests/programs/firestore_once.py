"""Takes a lamp by ``semel.complete`` in a batch, and dies there: ``before`` its commit, ``after`` it, or ``never``."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

import semel
import semel.firestore

project, point = sys.argv[1:]
db = firestore.Client(project=project, credentials=AnonymousCredentials())
shop = semel.Semel(f"firestore://{project}", namespace="shop")


def die_at(here: str) -> None:
    if here == point:
        os.kill(os.getpid(), signal.SIGKILL)


@shop.once(key="order_id", completes="handler", lease="1s", wait="20s")
def take(order_id: str) -> int:
    def write(batch: firestore.WriteBatch) -> Any:
        lamp = db.document("stock/lamp").get()
        left = semel.complete(batch, lamp.get("n") - 1)
        condition = db.write_option(last_update_time=lamp.update_time)
        batch.update(lamp.reference, {"n": left}, option=condition)
        die_at("before")
        return left

    left = semel.firestore.run_in_batch(db, write)
    die_at("after")
    return int(left)


print(take("A-1"))
