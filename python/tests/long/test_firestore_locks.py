"""A process that is killed inside a transaction: its locks stay for about a minute, and then the work is done once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from google.api_core import exceptions
from google.cloud import firestore

from ..conftest import PROGRAMS
from ..test_firestore import FENCE, KEY, _record, _stock, _take_in_batch, db  # noqa: F401

_LOCKS_SECONDS_MAX = 150
"""60 in every measurement; the test is about what happens then."""


@pytest.mark.parametrize("moment", ["read", "filled"])
def test_locks_of_a_killed_transaction_end(db: firestore.Client, moment: str) -> None:  # noqa: F811
    words = [sys.executable, str(PROGRAMS / "firestore_take.py"), "transaction", db.project, KEY, str(FENCE), moment]
    assert subprocess.run(words, env=os.environ, timeout=60).returncode == -signal.SIGKILL
    assert (_stock(db), _record(db)["state"]) == (10, 1)
    with pytest.raises(exceptions.Aborted):
        db.document("stock/lamp").update({"n": 0})
    deadline = time.monotonic() + _LOCKS_SECONDS_MAX
    while _record(db)["state"] == 1:
        assert time.monotonic() < deadline, "the locks did not end"
        try:
            _take_in_batch(db, KEY, FENCE)
        except exceptions.Aborted:
            continue  # still locked; each try waits for the server
    assert _stock(db) == 9
