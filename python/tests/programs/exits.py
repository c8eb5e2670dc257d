"""Ends while the store does not have the outcome of a run. argv = url, namespace, how: `plain`, `multiprocessing`."""

import atexit
import logging
import multiprocessing
import multiprocessing.util
import sys

import semel

logging.basicConfig(format="%(levelname)s %(message)s")
url, namespace, how = sys.argv[1:4]


def main() -> None:
    shop = semel.Semel(url, namespace=namespace, record_within="200ms")

    @shop.once(key="order_id", name="charge")
    def charge(order_id: str) -> str:
        if order_id == "A-1":
            print("running", flush=True)
            sys.stdin.readline()
        return "done"

    charge("warm")
    print("outcome", charge.outcome("A-1"), flush=True)
    if how == "multiprocessing":
        multiprocessing.util.Finalize(None, say_ending, exitpriority=20)
    else:
        atexit.register(say_ending)


def say_ending() -> None:
    """Before the package waits for the store."""
    print("ending", flush=True)


if how == "multiprocessing":
    sys.stdin = open("/dev/stdin")

    def with_stdin() -> None:
        sys.stdin = open(0, closefd=False)
        main()

    process = multiprocessing.get_context("fork").Process(target=with_stdin)
    process.start()
    process.join()
else:
    main()
