"""Gets a signal while a call is claiming, running or recording. argv = url, namespace, phase.

The store is behind a proxy of the test's own, which holds its answers on request: `hold` and `go` on stdin reach it
through the test. Prints what it comes to.
"""

import signal
import sys
import time

import semel

url, namespace, phase = sys.argv[1:4]
shop = semel.Semel(url, namespace=namespace, cache=0, record_within="20s")


class SoftLimit(Exception):
    """As Celery raises it, from a signal's handler."""


def raise_soft_limit(*_: object) -> None:
    raise SoftLimit


signal.signal(signal.SIGUSR1, raise_soft_limit)


@shop.once(key="order_id", name="charge", in_doubt="park", in_doubt_on=(SoftLimit,))
def charge(order_id: str) -> str:
    if order_id == "A-1":
        print("running", flush=True)
        if phase == "running":
            time.sleep(60)
        if phase == "recording":
            sys.stdin.readline()
            print("recording", flush=True)
    return "done"


charge("warm")
print("ready", flush=True)
sys.stdin.readline()
print("calling", flush=True)
try:
    print("value", charge("A-1"), flush=True)
except SoftLimit:
    print("soft limit", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
sys.stdin.readline()
outcome = charge.outcome("A-1")
while isinstance(outcome, semel.Again):  # what was claimed for nobody is not given back yet
    time.sleep(0.02)
    outcome = charge.outcome("A-1")
print("again", repr(outcome), flush=True)
