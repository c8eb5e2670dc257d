"""One message at a time, without a worker: what Celery's tracer, the broker and the store are told."""

from __future__ import annotations

from typing import Any, Callable, Optional

import pytest
from celery import Celery
from celery.app.trace import build_tracer
from celery.canvas import Signature
from celery.exceptions import Reject, SoftTimeLimitExceeded
from kombu.entity import Exchange, Queue

import semel
import semel.celery
from semel import _watch
from semel._wait import native
from semel.celery import _letters


class GatewayDown(Exception):
    pass


class Desk:
    """An app on a broker in memory, whose messages are delivered by hand."""

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.id = f"{queue}-1"  # the backend in memory is one for all
        self.app = Celery("desk", broker="memory://", backend="cache+memory://", task_cls="semel.celery:Task")
        self.app.conf.update(task_default_queue=queue, task_acks_late=True)
        self.shop = semel.Semel("memory:", namespace=queue)
        semel.celery.setup(self.app, self.shop)
        self.runs: list[Any] = []

    def task(self, effect: Callable[[Any], Any], **options: Any) -> Any:
        def charge(order: Any) -> Any:
            self.runs.append(order)
            return effect(order)

        return self.app.task(shared=False, name="charge", **{"once": "order", **options})(charge)

    def deliver(self, task: Any, order: Any, **request: Any) -> Any:
        """The state that the backend is told."""
        info = {"exchange": "", "routing_key": self.queue}
        request = {"id": self.id, "args": [order], "kwargs": {}, "delivery_info": info, **request}
        build_tracer(task.name, task, app=self.app)(self.id, (order,), {}, request)
        return self.app.AsyncResult(self.id).state

    def published(self) -> list[Any]:
        found: list[Any] = []
        with self.app.connection_for_read() as connection, connection.SimpleQueue(self.queue) as queue:
            while True:
                try:
                    message = queue.get(block=False)
                except queue.Empty:
                    return found
                message.ack()
                found.append(message)

    def letters(self) -> list[semel.celery.Letter]:
        return semel.celery.letters(self.app)


@pytest.fixture
def desk(namespace: str) -> Desk:
    return Desk(namespace)


class First:
    """Raises at the first call, and does what it stands for from the second on."""

    def __init__(self, instead: Callable[..., Any], error: BaseException) -> None:
        self._instead = instead
        self._error: Optional[BaseException] = error
        self.calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._instead(*args, **kwargs)


def test_a_key_refused_inside_a_run_is_the_runs_own_failure(desk: Desk) -> None:
    inner = desk.shop.once(name="inner")(lambda it: it)
    task = desk.task(lambda order: inner({order}))
    assert desk.deliver(task, "A-1") == "FAILURE"
    (letter,) = desk.letters()
    assert (letter.reason, letter.standing) == ("failed", "waiting") and "KeyRefused" in letter.why
    assert desk.runs == ["A-1"]


def test_a_task_that_rejects_its_message_for_good_leaves_a_letter(desk: Desk) -> None:
    def reject(order: str) -> None:
        raise Reject("no such order", requeue=False)

    desk.deliver(desk.task(reject), "A-1")
    (letter,) = desk.letters()
    assert (letter.reason, letter.why, letter.args) == ("failed", "rejected: no such order", ["A-1"])
    assert desk.published() == []


def fail(order: str) -> None:
    raise GatewayDown(order)


def test_a_message_comes_again_when_the_store_does_not_keep_its_letter(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = desk.task(fail, once={"key": "order", "final": (GatewayDown,)})
    monkeypatch.setattr(_letters, "native", First(native, semel.StoreUnavailable("away")))
    assert desk.deliver(task, "A-1") == "RETRY"
    (message,) = desk.published()
    assert (message.headers["id"], message.headers["retries"], desk.runs) == (desk.id, 0, ["A-1"])
    # It hears what is recorded, and its letter is kept this time.
    assert desk.deliver(task, "A-1", headers=message.headers) == "FAILURE"
    assert [letter.reason for letter in desk.letters()] == ["failed"]
    assert desk.runs == ["A-1"] and desk.published() == []


def test_a_soft_limit_does_not_lose_a_letter(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = First(native, SoftTimeLimitExceeded())
    task = desk.task(fail)
    monkeypatch.setattr(_letters, "native", keep)
    assert desk.deliver(task, "A-1") == "FAILURE"
    assert keep.calls == 2
    assert isinstance(desk.app.AsyncResult(desk.id).result, GatewayDown)
    assert [letter.reason for letter in desk.letters()] == ["failed"]


def test_a_soft_limit_does_not_lose_a_message_that_is_published_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = desk.task(lambda order: order)
    publish = First(Signature.apply_async, SoftTimeLimitExceeded())
    monkeypatch.setattr(Signature, "apply_async", lambda *args, **options: publish(*args, **options))
    monkeypatch.setattr(desk.shop.home, "get", First(desk.shop.home.get, semel.StoreUnavailable("away")))
    assert desk.deliver(task, "A-1") == "RETRY"
    assert [message.headers["id"] for message in desk.published()] == [desk.id]
    assert desk.runs == []


def test_a_soft_limit_after_the_record_does_not_hide_the_value(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    told = First(_watch.Watch.ended, SoftTimeLimitExceeded())
    monkeypatch.setattr(_watch.Watch, "ended", lambda *args, **options: told(*args, **options))
    assert desk.deliver(desk.task(lambda order: f"paid {order}"), "A-1") == "SUCCESS"
    assert desk.app.AsyncResult(desk.id).result == "paid A-1"
    assert desk.runs == ["A-1"]


def test_a_soft_limit_of_the_task_itself_is_told(desk: Desk) -> None:
    def limited(order: str) -> None:
        raise SoftTimeLimitExceeded

    assert desk.deliver(desk.task(limited), "A-1") == "FAILURE"
    assert isinstance(desk.app.AsyncResult(desk.id).result, SoftTimeLimitExceeded)
    assert [letter.reason for letter in desk.letters()] == ["failed"]


def test_a_letter_goes_back_through_the_exchange_that_its_message_came_by(desk: Desk) -> None:
    """A topic exchange routes by pattern: the routing key is not the name of a queue."""
    exchange = Exchange("orders", type="topic")
    desk.app.conf.task_queues = [Queue(desk.queue, exchange, routing_key=f"{desk.queue}.#")]
    task = desk.task(fail)
    key = f"{desk.queue}.eu.paid"
    assert desk.deliver(task, "A-1", delivery_info={"exchange": "orders", "routing_key": key}) == "FAILURE"
    (letter,) = desk.letters()
    assert (letter.exchange, letter.queue) == ("orders", key)
    with desk.app.connection_for_write() as connection:
        desk.app.amqp.queues[desk.queue](connection.default_channel).declare()
    semel.celery.redrive(desk.app, letter.id)
    (message,) = desk.published()
    assert (message.headers["id"], message.delivery_info["routing_key"]) == (desk.id, key)
