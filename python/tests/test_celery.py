"""Celery with real workers on a real Redis: what each message comes to, and how often its effect happens."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest

import semel
import semel.celery

from .conftest import free_port, wait_for_port
from .workers import WITHIN, CeleryWorkers

HERE = Path(__file__).parent


class Workers(CeleryWorkers):
    """A shop, its broker and its workers."""

    def __init__(self, environment: dict[str, str], directory: Path) -> None:
        super().__init__("celery_shop", HERE, environment, directory)
        os.environ.update(environment)
        sys.path.insert(0, str(HERE))
        import celery_shop  # type: ignore[import-not-found]

        self.shop: Any = importlib.reload(celery_shop)
        sys.path.remove(str(HERE))

    def count(self, name: str) -> int:
        return int(self.shop.effects.get(f"{self.shop.PREFIX}:{name}") or 0)

    def go(self, name: str) -> None:
        self.shop.effects.set(f"{self.shop.PREFIX}:go:{name}", 1)


@pytest.fixture
def workers(redis_url: str, namespace: str, tmp_path: Path) -> Iterator[Workers]:
    base = redis_url.rstrip("/")
    environment = {
        "SHOP_BROKER": f"{base}/1",
        "SHOP_BACKEND": f"{base}/2",
        "SHOP_EFFECTS": f"{base}/3",
        "SHOP_STORE": f"{base}/0",
        "SHOP_NAMESPACE": namespace,
        "SHOP_QUEUE": namespace,
        "SHOP_VISIBILITY": "3600",
    }
    started = Workers(environment, tmp_path)
    yield started
    started.stop()


def letters(workers: Workers) -> list[semel.celery.Letter]:
    names = {name for name in workers.shop.app.tasks if name.startswith("celery_shop.")}
    mine = [letter for letter in semel.celery.letters(workers.shop.app) if letter.task in names]
    return [letter for letter in mine if letter.queue == workers.shop.PREFIX]


@pytest.mark.parametrize(("pool", "concurrency"), [("prefork", 2), ("threads", 4), ("solo", 1), ("gevent", 8), ("eventlet", 8)])
def test_copies_of_a_message_take_effect_once(workers: Workers, pool: str, concurrency: int) -> None:
    workers.start(pool, concurrency)
    charge = workers.shop.charge
    first = [charge.apply_async(("A-1", 900), task_id=f"{workers.shop.PREFIX}-1") for _ in range(3)]
    other = charge.apply_async(kwargs={"order": "A-1", "cents": 900})
    values = [workers.get(result) for result in (*first, other)]
    assert values == [{"order": "A-1", "cents": 900, "effect": 1}] * 4
    assert workers.get(workers.shop.unprotected.delay("plain")) == 1
    assert workers.count("A-1") == 1


def test_a_pool_process_that_is_killed_is_followed_by_one_run_more(workers: Workers) -> None:
    worker = workers.start()
    result = workers.shop.slow.delay("A-1")
    workers.until(lambda: workers.count("A-1") == 1)
    for pid in workers.child_of(worker):
        os.kill(pid, signal.SIGKILL)
    workers.until(lambda: workers.count("A-1") == 2)
    workers.go("A-1")
    assert workers.get(result) == 2
    assert workers.count("A-1") == 2


def test_under_park_a_killed_run_is_never_repeated_and_leaves_a_letter(workers: Workers) -> None:
    worker = workers.start()
    result = workers.shop.slow_parked.delay("A-1")
    workers.until(lambda: workers.count("A-1") == 1)
    for pid in workers.child_of(worker):
        os.kill(pid, signal.SIGKILL)
    assert workers.state(result) == "FAILURE"
    assert workers.count("A-1") == 1
    (letter,) = workers.until(lambda: letters(workers))
    assert (letter.task, letter.reason, letter.args) == ("celery_shop.slow_parked", "parked", ["A-1"])
    # A person has looked: it did not happen. The redriven message runs it, and the letter goes.
    workers.go("A-1")
    semel.celery.redrive(workers.shop.app, letter.id)
    workers.until(lambda: workers.count("A-1") == 2)
    workers.until(lambda: not letters(workers))


def test_a_worker_that_is_killed_is_followed_after_the_visibility_timeout(workers: Workers) -> None:
    first = workers.start(SHOP_VISIBILITY="2")
    result = workers.shop.slow.delay("A-1")
    workers.until(lambda: workers.count("A-1") == 1)
    os.killpg(first.pid, signal.SIGKILL)
    workers.go("A-1")
    workers.start(SHOP_VISIBILITY="2")
    assert workers.get(result) == 2


def test_a_task_longer_than_the_visibility_timeout_runs_once(workers: Workers) -> None:
    for _ in range(2):
        workers.start(SHOP_VISIBILITY="1", concurrency=1)
    result = workers.shop.slow.delay("A-1")
    workers.until(lambda: "outcome=busy" in workers.log())
    workers.go("A-1")
    assert workers.get(result) == 1
    assert workers.count("A-1") == 1


def test_autoretry_runs_again_and_the_next_link_runs_once(workers: Workers) -> None:
    workers.start()
    chain = workers.shop.flaky.s("A-1", 2) | workers.shop.after.s()
    chain.apply_async()
    workers.until(lambda: workers.count("after") == 1)
    assert workers.count("A-1") == 3
    again = workers.shop.flaky.delay("A-1", 2)
    assert workers.get(again) == 3 and workers.count("A-1") == 3


def test_a_task_whose_retries_are_used_up_leaves_a_letter(workers: Workers) -> None:
    # With two processes Celery may store the RETRY of one run over the FAILURE of the next.
    workers.start(concurrency=1)
    result = workers.shop.flaky.delay("A-1", 99)
    assert workers.state(result) == "FAILURE"
    assert workers.count("A-1") == 4
    (letter,) = workers.until(lambda: letters(workers))
    assert (letter.reason, letter.standing) == ("failed", "waiting") and "GatewayDown" in letter.why


def test_under_park_a_retry_of_an_exception_that_may_have_had_effect_parks(workers: Workers) -> None:
    workers.start()
    result = workers.shop.parked_retry.delay("A-1")
    assert workers.state(result) == "FAILURE"
    assert workers.count("A-1") == 1
    assert [letter.reason for letter in workers.until(lambda: letters(workers))] == ["parked"]


def test_a_redriven_message_has_the_arguments_that_it_had(workers: Workers) -> None:
    from decimal import Decimal

    workers.start()
    assert workers.get(workers.shop.typed.delay("A-1", Decimal("9.00"))) == "Decimal"
    with pytest.raises(Exception, match="known with other arguments"):
        workers.get(workers.shop.typed.delay("A-1", Decimal("9.50")))
    (letter,) = workers.until(lambda: letters(workers))
    assert letter.args == ["A-1", Decimal("9.50")]
    redriven = semel.celery.redrive(workers.shop.app, letter.id)
    workers.until(lambda: workers.count("A-1") == 2)
    assert redriven.id == letter.task_id


def test_retry_by_hand_and_beside_the_run(workers: Workers) -> None:
    workers.start()
    assert workers.get(workers.shop.retried_by_hand.delay("A-1")) == 3
    workers.shop.retried_beside.delay("A-2")
    workers.until(lambda: workers.count("A-2") == 2)
    assert workers.get(workers.shop.retried_beside.delay("A-2")) == "done"
    assert workers.count("A-2") == 2


def test_a_task_may_change_its_arguments(workers: Workers) -> None:
    workers.start()
    assert workers.get(workers.shop.changes_its_arguments.delay({"id": "A-1"})) == 3


def test_a_retry_that_is_raised_is_published(workers: Workers) -> None:
    workers.start()
    workers.shop.raises_its_retry.delay("A-1")
    workers.until(lambda: workers.count("A-1") == 2)


def test_a_task_that_calls_itself_publishes_nothing_of_its_own_message(workers: Workers) -> None:
    workers.start()
    inner = workers.shop.calls_itself.delay("inner")
    workers.until(lambda: workers.count("inner") == 1)
    assert workers.state(workers.shop.calls_itself.delay("outer", "inner")) == "FAILURE"
    workers.go("inner")
    assert workers.get(inner) == "inner"
    assert (workers.count("outer"), workers.count("inner")) == (1, 1)


def test_a_letter_describes_the_arguments_as_they_came(workers: Workers) -> None:
    workers.start(concurrency=1)
    assert workers.state(workers.shop.changes_its_arguments.delay({"id": "A-2", "fails": True})) == "FAILURE"
    (letter,) = workers.until(lambda: letters(workers))
    assert letter.args == [{"id": "A-2", "fails": True}] and letter.standing == "waiting"


def test_what_a_protected_task_may_not_do_is_refused(workers: Workers) -> None:
    workers.start(concurrency=1)
    for what, message in [("replace", "cannot replace itself"), ("retry", "other arguments is other work")]:
        with pytest.raises(Exception, match=message):
            workers.get(workers.shop.misused.delay(what))


def test_under_park_what_a_task_rejects_is_not_run_again(workers: Workers) -> None:
    workers.start(concurrency=1)
    workers.shop.rejects.delay("A-1")
    workers.until(lambda: [letter.reason for letter in letters(workers)] == ["parked"])
    assert workers.count("A-1") == 1


def test_a_limit_before_the_run_loses_nothing(namespace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A soft limit that hits while the claim is asked for: nothing ran, so the message is published again."""
    from celery import Celery
    from celery.app.trace import build_tracer
    from celery.exceptions import SoftTimeLimitExceeded

    app = Celery("limited", broker="memory://", backend="cache+memory://", task_cls="semel.celery:Task")
    app.conf.task_default_queue = namespace
    shop = semel.Semel("memory:", namespace=namespace)
    semel.celery.setup(app, shop)
    runs = []

    @app.task(once="order", shared=False)
    def charge(order: str) -> None:
        runs.append(order)

    def limited() -> Any:
        raise SoftTimeLimitExceeded

    monkeypatch.setattr(shop.home, "get", limited)
    request = {"id": "m1", "args": ["A-1"], "kwargs": {}, "delivery_info": {"exchange": "", "routing_key": namespace}}
    build_tracer(charge.name, charge, app=app)("m1", ("A-1",), {}, request)
    with app.connection_for_read() as connection, connection.SimpleQueue(namespace) as queue:
        message = queue.get(timeout=5)
    assert (message.headers["id"], app.AsyncResult("m1").state, runs) == ("m1", "RETRY", [])


def test_a_final_failure_is_told_again_and_leaves_one_letter(workers: Workers) -> None:
    workers.start()
    for _ in range(2):
        result = workers.shop.refused.delay("A-1")
        with pytest.raises(Exception, match="no money"):
            workers.get(result)
    assert workers.count("A-1") == 1
    (letter,) = letters(workers)
    assert (letter.reason, letter.standing) == ("failed", "failed")
    semel.celery.discard(workers.shop.app, letter.id)
    assert letters(workers) == []


def test_other_arguments_under_one_key_leave_a_letter_that_can_be_redriven(workers: Workers) -> None:
    workers.start()
    assert workers.get(workers.shop.charge.delay("A-1", 900))["effect"] == 1
    with pytest.raises(Exception, match="known with other arguments"):
        workers.get(workers.shop.charge.delay("A-1", 901))
    (letter,) = workers.until(lambda: letters(workers))
    assert letter.reason == "mismatched" and workers.count("A-1") == 1
    semel.celery.redrive(workers.shop.app, letter.id)
    workers.until(lambda: workers.count("A-1") == 2)
    workers.until(lambda: not letters(workers))


def test_a_message_without_a_key_is_kept(workers: Workers) -> None:
    workers.start()
    with pytest.raises(Exception, match="key part /order is empty"):
        workers.get(workers.shop.charge.delay(""))
    (letter,) = workers.until(lambda: letters(workers))
    assert (letter.reason, letter.args) == ("invalid", [""])


def test_a_soft_limit_is_in_doubt_and_runs_again_when_it_is_delivered_again(workers: Workers) -> None:
    workers.start()
    assert workers.state(workers.shop.soft_limited.delay("A-1")) == "FAILURE"
    assert "outcome=in_doubt" in workers.log()
    assert workers.get(workers.shop.soft_limited.delay("A-1")) == 2


def test_steps_are_done_once_over_kills(workers: Workers) -> None:
    worker = workers.start()
    result = workers.shop.steps.delay("A-1")
    workers.until(lambda: workers.count("A-1:mail") == 1)
    for pid in workers.child_of(worker):
        os.kill(pid, signal.SIGKILL)
    workers.go("A-1")
    assert workers.get(result) == [1, 1]
    assert (workers.count("A-1:charge"), workers.count("A-1:mail")) == (1, 1)


def test_a_store_that_is_away_puts_messages_off(workers: Workers, tmp_path: Path) -> None:
    port = free_port()
    workers.start(SHOP_STORE=f"redis://127.0.0.1:{port}/")
    result = workers.shop.charge.delay("A-1")
    workers.until(lambda: "outcome=store_unavailable" in workers.log())
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        assert workers.get(result)["effect"] == 1
    finally:
        server.terminate()
        server.wait(20)


def test_a_worker_does_not_start_on_a_directory_store_with_several_processes(workers: Workers, tmp_path: Path) -> None:
    worker = workers.start(SHOP_STORE=f"dir:{tmp_path / 'store'}")
    assert worker.wait(WITHIN) != 0
    assert "is for one process, and the prefork pool has several" in workers.log()


def test_eager_and_direct_calls_publish_nothing(redis_url: str, namespace: str) -> None:
    from celery import Celery

    app = Celery("eager", broker="memory://", task_cls="semel.celery:Task")
    app.conf.task_always_eager = True
    semel.celery.setup(app, semel.Semel("memory:", namespace=namespace))
    runs = []

    @app.task(once="order", shared=False)
    def charge(order: str) -> int:
        runs.append(order)
        return len(runs)

    assert charge("A-1") == charge.delay("A-1").get() == charge.apply(("A-1",)).get() == 1
    assert runs == ["A-1"]
