"""Measures the Python package against what people use today, in interleaved rounds: `cargo xtask bench python`.

Every row is a ratio of two medians of one run, because machines are noisy. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any, Callable

import psycopg
import redis
from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.persistence.cache import CachePersistenceLayer

import semel

THREADS = 16
NUMBERS = itertools.count()

Call = Callable[[int], Any]


class Contender:
    """One side of a row: a call that gets numbers."""

    def __init__(self, name: str, call: Call) -> None:
        self.name = name
        self.call = call


def latency(call: Call, calls: int, numbers: Callable[[], int]) -> float:
    """Seconds of a call, the median."""
    taken = []
    for _ in range(calls):
        number = numbers()
        began = time.perf_counter()
        call(number)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def rate(call: Call, calls: int) -> float:
    """Calls a second of sixteen threads."""
    start = threading.Barrier(THREADS + 1)

    def work() -> None:
        start.wait()
        for _ in range(calls // THREADS):
            call(next(NUMBERS))

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    start.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    return calls / (time.perf_counter() - began)


# === contenders ===


def semel_on(url: str, **settings: Any) -> Contender:
    shop = semel.Semel(url, namespace=uuid.uuid4().hex, **settings)

    @shop.once(key="order_id")
    def charge(order_id: int, cents: int) -> dict[str, int]:
        return {"order": order_id, "cents": cents}

    return Contender("semel", lambda number: charge(number, 900))


def powertools_on(url: str) -> Contender:
    client = redis.Redis.from_url(url, decode_responses=True)
    layer = CachePersistenceLayer(client=client)  # type: ignore[arg-type]
    config = IdempotencyConfig(use_local_cache=False)
    prefix = uuid.uuid4().hex

    @idempotent_function(data_keyword_argument="order", persistence_store=layer, config=config)
    def charge(order: dict[str, Any]) -> dict[str, Any]:
        return order

    return Contender("Powertools", lambda number: charge(order={"id": f"{prefix}-{number}", "cents": 900}))


def psycopg_on(url: str) -> Contender:
    """What people write by hand: a row before the effect and its result after it, each committed."""
    connections = threading.local()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS done (key text PRIMARY KEY, state text, result text)")
    prefix = uuid.uuid4().hex

    def charge(number: int) -> Any:
        if not hasattr(connections, "own"):
            connections.own = psycopg.connect(url, autocommit=True)
        own, key = connections.own, f"{prefix}-{number}"
        own.execute("INSERT INTO done VALUES (%s, 'running') ON CONFLICT DO NOTHING", (key,))
        result = f'{{"order": {number}, "cents": 900}}'
        own.execute("UPDATE done SET state = 'done', result = %s WHERE key = %s", (result, key))
        return result

    return Contender("psycopg by hand", charge)


# === rows ===


class Table:
    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        print("| what | semel | other | ratio (rounds) | wanted |\n|---|---:|---:|---|---|", flush=True)

    def row(self, what: str, unit: str, mine: Callable[[], float], other: Callable[[], float], wanted: str) -> None:
        """Measures both in turn, round by round."""
        pairs = [(mine(), other()) for _ in range(self.rounds)]
        ratios = sorted(own / theirs for own, theirs in pairs)
        own, theirs = (statistics.median(side) for side in zip(*pairs))
        spread = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"
        print(f"| {what} | {_shown(own, unit)} | {_shown(theirs, unit)} | {spread} | {wanted} |", flush=True)

    def alone(self, what: str, unit: str, mine: Callable[[], float], wanted: str) -> None:
        values = sorted(mine() for _ in range(self.rounds))
        spread = f"({_shown(values[0], unit)}–{_shown(values[-1], unit)})"
        print(f"| {what} | {_shown(statistics.median(values), unit)} | | {spread} | {wanted} |", flush=True)


def _shown(value: float, unit: str) -> str:
    return f"{value * 1e6:.0f} µs" if unit == "µs" else f"{value:.0f}/s"


def measure(table: Table, redis_url: str, postgres_url: str, calls: int) -> None:
    on_redis, powertools = semel_on(redis_url), powertools_on(redis_url)
    on_postgres, by_hand = semel_on(postgres_url), psycopg_on(postgres_url)
    uncached, in_memory = semel_on(redis_url, cache=0), semel_on("memory:")
    fresh = lambda: next(NUMBERS)  # noqa: E731
    for contender in (on_redis, powertools, on_postgres, by_hand, uncached, in_memory):
        latency(contender.call, 50, fresh)

    def timed(contender: Contender) -> Callable[[], float]:
        return lambda: latency(contender.call, calls, fresh)

    def rated(contender: Contender) -> Callable[[], float]:
        return lambda: rate(contender.call, calls * 4)

    def replayed(contender: Contender) -> Callable[[], float]:
        def replay() -> float:
            number = fresh()
            contender.call(number)
            return latency(contender.call, calls, lambda: number)

        return replay

    table.row("fresh call, Redis, against Powertools", "µs", timed(on_redis), timed(powertools), "≤ 1.0")
    table.row("the same, 16 threads", "/s", rated(on_redis), rated(powertools), "≥ 1.5")
    table.row("replay from memory, against Powertools", "µs", replayed(on_redis), replayed(powertools), "≤ 0.1")
    table.row("replay from Redis (cache=0)", "µs", replayed(uncached), replayed(powertools), "≤ 1.0")
    table.row("fresh call, PostgreSQL, against INSERT + UPDATE", "µs", timed(on_postgres), timed(by_hand), "≤ 1.3")
    table.row("the same, 16 threads", "/s", rated(on_postgres), rated(by_hand), "≥ 1.5")
    table.alone("memory store, the whole decorator", "µs", timed(in_memory), "≤ 60 µs")


# === Celery ===

SHOP = """
import os
import semel, semel.celery
from celery import Celery
app = Celery("shop", broker=os.environ["BROKER"], task_cls="semel.celery:Task")
app.conf.update(task_acks_late=True, task_ignore_result=True, worker_prefetch_multiplier=16, task_time_limit=60,
                task_default_queue=os.environ["QUEUE"], worker_hijack_root_logger=True)
semel.celery.setup(app, semel.Semel(os.environ["STORE"], namespace=os.environ["QUEUE"]))
import redis
counter = redis.Redis.from_url(os.environ["COUNTER"])
@app.task(once="number")
def protected(number):
    counter.incr(os.environ["QUEUE"])
@app.task
def plain(number):
    counter.incr(os.environ["QUEUE"])
"""


def celery_rate(redis_url: str, store: str, task: str, tasks: int) -> float:
    """Tasks a second of a worker with two processes, from a queue that is full."""
    base, queue = redis_url.rstrip("/"), uuid.uuid4().hex
    environment = {**os.environ, "BROKER": f"{base}/4", "STORE": store, "QUEUE": queue, "COUNTER": f"{base}/5"}
    counter = redis.Redis.from_url(f"{base}/5")
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "shop.py").write_text(SHOP)
        fill = f"import shop; [shop.{task}.delay(number) for number in range({tasks})]"
        subprocess.run([sys.executable, "-c", fill], cwd=directory, env=environment, check=True)
        command = [sys.executable, "-m", "celery", "-A", "shop", "worker", "-c", "2", "-l", "ERROR", "--without-gossip",
                   "--without-mingle", "--without-heartbeat"]  # fmt: skip
        worker = subprocess.Popen(command, cwd=directory, env=environment, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)  # fmt: skip
        try:
            done = lambda: int(counter.get(queue) or 0)  # type: ignore[arg-type]  # noqa: E731
            while done() < tasks // 10:  # the first ones wait for the worker
                time.sleep(0.002)
            first, began = done(), time.perf_counter()
            while done() < tasks:
                time.sleep(0.002)
            return (tasks - first) / (time.perf_counter() - began)
        finally:
            worker.terminate()
            worker.wait()


def measure_celery(table: Table, redis_url: str, postgres_url: str, tasks: int) -> None:
    for name, store, wanted in [("Redis", redis_url, "≥ 0.75"), ("PostgreSQL", postgres_url, "≥ 0.6")]:
        table.row(
            f"Celery tasks on {name}, with once against without", "/s",
            lambda: celery_rate(redis_url, store, "protected", tasks),  # noqa: B023
            lambda: celery_rate(redis_url, store, "plain", tasks), wanted,  # noqa: B023
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=500, help="calls of one thread in a round")
    parser.add_argument("--tasks", type=int, default=2000, help="Celery's tasks in a round; 0 leaves Celery out")
    parsed = parser.parse_args()
    redis_url, postgres_url = os.environ["SEMEL_TEST_REDIS_URL"], os.environ["SEMEL_TEST_POSTGRES_URL"]
    table = Table(parsed.rounds)
    measure(table, redis_url, postgres_url, parsed.calls)
    if parsed.tasks:
        measure_celery(table, redis_url, postgres_url, parsed.tasks)


if __name__ == "__main__":
    main()
