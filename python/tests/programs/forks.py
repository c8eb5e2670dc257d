"""Uses a store, forks, and uses it in parent and children: argv = url, namespace, how to fork, how many."""

import multiprocessing
import os
import sys
import threading
import warnings

import semel

url, namespace, how, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
shop = semel.Semel(url, namespace=namespace, cache=0)


@shop.once(key="order_id", name="charge")
def charge(order_id: str) -> int:
    return os.getpid()


def child(number: int) -> None:
    assert charge(f"child-{number}") == os.getpid()
    assert charge("parent") != os.getpid()


def keep_busy(stop: threading.Event) -> None:
    number = 0
    while not stop.is_set():
        charge(f"busy-{number}")
        number += 1


def with_os_fork(number: int) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            child(number)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, f"child {number} failed"


def with_multiprocessing(number: int) -> None:
    process = multiprocessing.get_context("fork").Process(target=child, args=(number,))
    process.start()
    process.join()
    assert process.exitcode == 0, f"child {number} failed"


if how != "first-use":
    assert charge("parent") == os.getpid()
else:
    # Threads are started by the first call, not by import or decoration: a fork before it has nothing to lose.
    assert threading.active_count() == 1 and len(os.listdir("/proc/self/task")) == 1, "threads before the first call"
    warnings.simplefilter("error")
    pid = os.fork()
    if pid == 0:
        os._exit(0 if charge("child") == os.getpid() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    print("fine")
    sys.exit()

# From Python 3.12 on a fork with threads warns; the runtime is one.
warnings.simplefilter("ignore", DeprecationWarning)
stop = threading.Event()
busy = threading.Thread(target=keep_busy, args=(stop,))
if how.startswith("busy"):
    busy.start()
for number in range(count):
    (with_multiprocessing if how == "multiprocessing" else with_os_fork)(number)
stop.set()
if how.startswith("busy"):
    busy.join()
assert charge("parent") == os.getpid()
print("fine")
