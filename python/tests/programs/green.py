"""Many green threads ask for the work that one of them runs. argv = gevent or eventlet, url, namespace, how many."""

import sys

kind, url, namespace, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
if kind == "gevent":
    import gevent.monkey

    gevent.monkey.patch_all()
else:
    import eventlet

    eventlet.monkey_patch()

import threading  # noqa: E402
import time  # noqa: E402
from typing import Any  # noqa: E402

import semel  # noqa: E402
from semel import _once, _wait  # noqa: E402

_wait._GREEN_THREADS_MAX = 20

shop = semel.Semel(url, namespace=namespace, cache=0)
runs: list[str] = []
asked = 0
ticks = 0


def counted(*args: Any, **kwargs: Any) -> Any:
    global asked
    asked += 1
    return _wait.native_claim(*args, **kwargs)


setattr(_once, "native_claim", counted)  # noqa: B010


# A waiter that kept the last thread from the run's end would keep it for as long as it waits.
@shop.once(key="order_id", name="charge", wait="60s")
def charge(order_id: str) -> int:
    runs.append(order_id)
    while asked < count:
        time.sleep(0.01)
    # Everybody waits now. Were one of them to stop the loop, nobody would count on.
    enough = ticks + 5
    while ticks < enough:
        time.sleep(0.01)
    return semel.step("count", lambda step: len(runs))


values: list[int] = []
done = threading.Event()


def tick() -> None:
    global ticks
    while not done.is_set():
        ticks += 1
        time.sleep(0.01)


threads = [threading.Thread(target=lambda: values.append(charge("A-1"))) for _ in range(count)]
ticking = threading.Thread(target=tick)
ticking.start()
began = time.monotonic()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
took = time.monotonic() - began
done.set()
ticking.join()
assert values == [1] * count and runs == ["A-1"], (len(values), runs)
assert took < 40, f"the end waited for those who waited for it: {took} s"
print("fine", flush=True)
