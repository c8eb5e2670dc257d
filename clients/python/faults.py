"""A broker that misbehaves, seen by Google's clients: `python faults.py HOST:PORT`.

`python faults.py` alone prints the faults that such a broker is started with, one per line.
"""

import sys

from bus import Bus
from handler import Handler, check
from tasks import QUICK, Program, connect

FAULTS = [
    "duplicate=1@twice",
    "duplicate-at-once=1@at-once",
    "lose-answer=1@lost",
    "cut=1:4@cut",
    "duplicate=1@push-twice",
]


def deliver(program, short, attempts, path, count, answer=200):
    """What a handler sees of one task in the queue of this name."""
    queue = program.queue(short, retry_config={**QUICK, "max_attempts": attempts})
    url = program.handler.answering(path, answer)
    name = program.task(queue, url, id="t", request={"body": b"0123456789"}).name
    seen = program.handler.requests(path, count)
    program.gone(name)
    return seen


def main():
    if len(sys.argv) < 2:
        print(*FAULTS, sep="\n")
        return
    program = Program(connect(sys.argv[1], "grpc"))
    seen = deliver(program, "orderly", 5, "/orderly", 1)
    check("without a fault a task is delivered once", len(seen), 1)
    seen = deliver(program, "twice", 5, "/twice", 2)
    check("a duplicate has the same name", {one.headers["X-CloudTasks-TaskName"] for one in seen}, {"t"})
    seen = deliver(program, "at-once", 5, "/at-once", 2)
    check("so has one at the same time", {one.headers["X-CloudTasks-TaskName"] for one in seen}, {"t"})
    seen = deliver(program, "lost", 3, "/lost", 3)
    retries = [one.headers["X-CloudTasks-TaskRetryCount"] for one in seen]
    check("a lost answer is asked for again, until attempts end", retries, ["0", "1", "2"])
    seen = deliver(program, "cut", 2, "/cut", 2)
    check("a cut connection brings the beginning of the body", [one.body for one in seen], [b"0123", b"0123"])

    bus, handler = Bus(sys.argv[1]), Handler()
    url = handler.answering("/push")
    topic, _ = bus.both("push-twice", push_config={"push_endpoint": url})
    [id] = bus.publish(topic, b"x")
    seen = handler.requests("/push", 2)
    check("a duplicate push has the same id", all(id.encode() in one.body for one in seen), True)


if __name__ == "__main__":
    main()
