"""Green threads: however many wait for a run, its end is not kept out."""

from __future__ import annotations

import pytest

from .conftest import Start


# 64 may wait for one run. eventlet has a pool of 20 threads; that of the package under gevent is made as small.
@pytest.mark.parametrize("kind", ["gevent", "eventlet"])
def test_waiting_green_threads_do_not_keep_out_the_end(
    start: Start, redis_url: str, namespace: str, kind: str
) -> None:
    process = start("green.py", kind, redis_url, namespace, 60)
    out, err = process.communicate(timeout=110)
    assert (out, process.returncode) == ("fine\n", 0), err
