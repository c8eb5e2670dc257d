"""The tasks of ``examples/celery-*`` with real workers: a pool process is killed in the middle, and effects are counted.

``semel prove`` judges the same tasks behind HTTP; here their messages come from Celery, with its own redelivery and
retries.
"""

from __future__ import annotations

import collections
import json
import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Callable, Iterator

import psycopg
import pytest
from celery import Celery

from .workers import CeleryWorkers

EXAMPLES = Path(__file__).parents[2] / "examples"
HELD_SECONDS = 30


class Specimen(CeleryWorkers):
    """One form of an example: its worker, and a queue of its own."""

    def __init__(self, example: str, form: str, environment: dict[str, str], logs: Path, queue: str) -> None:
        logs.mkdir()
        super().__init__(form, EXAMPLES / example, environment, logs)
        self._form, self._queue = form, queue
        redis = environment["REDIS_URL"]
        self._sender = Celery("sender", broker=redis, backend=redis)
        self._worker = self.start("prefork", 1, "-Q", queue)

    def send(self, task: str, **arguments: Any) -> Any:
        return self._sender.send_task(f"{self._form}.{task}", kwargs=arguments, queue=self._queue)

    def kill_in_the_middle(self, is_in_the_middle: Callable[[], Any]) -> None:
        self.until(is_in_the_middle)
        for pid in self.child_of(self._worker):
            os.kill(pid, signal.SIGKILL)


Start = Callable[..., Specimen]


@pytest.fixture
def start(redis_url: str, database: str, namespace: str, tmp_path: Path) -> Iterator[Start]:
    """Starts a worker of an example."""
    started: list[Specimen] = []

    def start(example: str, form: str, **environment: str) -> Specimen:
        own = {"REDIS_URL": f"{redis_url.rstrip('/')}/4", "DATABASE_URL": database, **environment}
        name = f"{form}-{len(started)}"
        specimen = Specimen(example, form, own, tmp_path / name, f"{namespace}-{name}")
        started.append(specimen)
        return specimen

    yield start
    for specimen in started:
        specimen.stop()


class Downstream:
    """A service elsewhere. Its first effect happens, and the answer is held back until :meth:`let_go`."""

    def __init__(self, *, honours_key: bool, refuses_first: bool = False) -> None:
        self.effects: collections.Counter[str] = collections.Counter()
        self.asked: collections.Counter[str] = collections.Counter()
        self._refusals = int(refuses_first)
        self._honours_key = honours_key
        self._known: set[tuple[str, str | None]] = set()
        self._turn, self._go = threading.Lock(), threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def let_go(self) -> None:
        self._go.set()

    def stop(self) -> None:
        self.let_go()
        self._server.shutdown()
        self._server.server_close()

    def ask(self, path: str, key: str | None) -> int:
        with self._turn:
            self.asked[path] += 1
            if self._refusals:
                self._refusals -= 1
                return 503
            if key is None or not self._honours_key or (path, key) not in self._known:
                self.effects[path] += 1
            self._known.add((path, key))
        self._go.wait(HELD_SECONDS)
        return 200

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        downstream = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                status = downstream.ask(self.path, self.headers["Idempotency-Key"])
                body = json.dumps({"reference": "R-1"}).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # who asked was killed

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


Serve = Callable[..., Downstream]


@pytest.fixture
def serve() -> Iterator[Serve]:
    served: list[Downstream] = []

    def serve(**kind: bool) -> Downstream:
        served.append(Downstream(**kind))
        return served[-1]

    yield serve
    for downstream in served:
        downstream.stop()


def one(database: str, sql: str) -> Any:
    with psycopg.connect(database) as connection:
        row = connection.execute(sql).fetchone()
        return row[0] if row else None


def test_a_payment_is_charged_once_where_its_wrong_form_charges_twice(
    start: Start, serve: Serve, database: str, namespace: str
) -> None:
    payments = {form: f"{namespace}-{form}" for form in ("right", "wrong")}
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE payments (id text PRIMARY KEY, status text NOT NULL)")
        for payment in payments.values():
            connection.execute("INSERT INTO payments VALUES (%s, 'open')", (payment,))
    banks = {form: serve(honours_key=True, refuses_first=True) for form in payments}
    specimens = {form: start("celery-payment", form, BANK_URL=banks[form].url) for form in payments}
    results = {form: specimens[form].send("process_payment", payment=payments[form], cents=900) for form in payments}
    for form, specimen in specimens.items():
        specimen.kill_in_the_middle(lambda: banks[form].effects["/charges"] == 1)
        banks[form].let_go()
    assert specimens["right"].get(results["right"]) == "R-1"
    assert specimens["wrong"].get(results["wrong"]) == "paid"
    # Each was refused once and retried, killed once and run again.
    assert [bank.asked["/charges"] for bank in banks.values()] == [3, 3]
    assert banks["right"].effects == {"/charges": 1, "/receipts": 1}
    assert banks["wrong"].effects == {"/charges": 2, "/receipts": 1}
    assert one(database, "SELECT count(*) FROM payments WHERE status = 'paid'") == 2


WAITS_FOR_THE_TEST = """
CREATE TABLE upsert_score (player text PRIMARY KEY, points integer NOT NULL);
CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER wait_for_test AFTER INSERT OR UPDATE ON upsert_score
    DEFERRABLE INITIALLY {} FOR EACH ROW EXECUTE FUNCTION wait_for_test()
"""


@pytest.mark.parametrize(
    ("wait", "then"),
    [("IMMEDIATE", "attempt=2"), ("DEFERRED", "outcome=replayed")],
    ids=["before its COMMIT", "in its COMMIT"],
)
def test_points_are_added_once(start: Start, database: str, namespace: str, wait: str, then: str) -> None:
    specimen = start("celery-upsert", "right")
    with psycopg.connect(database, autocommit=True) as test:
        test.execute(WAITS_FOR_THE_TEST.format(wait))
        test.execute("SELECT pg_advisory_lock(7)")
        result = specimen.send("add_points", round_id=namespace, player="ada", points=10)
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND NOT granted"
        specimen.kill_in_the_middle(lambda: one(database, waiting))
        # The server goes on with what the dead process asked of it last: the INSERT, or the COMMIT.
        test.execute("SELECT pg_advisory_unlock(7)")
    assert specimen.get(result) == "added"
    assert one(database, "SELECT points FROM upsert_score") == 10
    assert then in specimen.log()


MAILS = [
    # form, whether the service de-duplicates by the step's key, the message's end, mails
    ("right", True, "SUCCESS", 1),  # exactly one
    ("right", False, "SUCCESS", 2),  # at least one: under retry it is sent again
    ("right_parked", False, "FAILURE", 1),  # at most one: under park it is not
]


def test_mails_of_a_run_that_was_killed(start: Start, serve: Serve, namespace: str) -> None:
    killed = []
    for number, (form, honours_key, _, _) in enumerate(MAILS):
        mailer = serve(honours_key=honours_key)
        specimen = start("celery-check-first", form, MAILER_URL=mailer.url)
        killed.append((specimen, mailer, specimen.send("welcome", user=f"{namespace}-{number}")))
    for specimen, mailer, _ in killed:
        specimen.kill_in_the_middle(lambda: mailer.effects["/mails"] == 1)
        mailer.let_go()
    for number, ((_, _, end, mails), (specimen, mailer, result)) in enumerate(zip(MAILS, killed)):
        assert (specimen.state(result), mailer.effects["/mails"]) == (end, mails)
        assert mailer.asked["/mails"] == (2 if end == "SUCCESS" else 1)
        # It is settled: another message of the same work changes nothing.
        again = specimen.send("welcome", user=f"{namespace}-{number}")
        assert (specimen.state(again), mailer.effects["/mails"]) == (end, mails)
