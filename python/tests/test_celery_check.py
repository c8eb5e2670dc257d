"""What `semel.celery.check` finds, each by the setting that causes it."""

from __future__ import annotations

from typing import Any

import pytest
from celery import Celery

import semel
import semel.celery

FINE: dict[str, Any] = {
    "task_acks_late": True,
    "task_reject_on_worker_lost": True,
    "task_time_limit": 120,
    "worker_prefetch_multiplier": 1,
}


def findings(
    broker: str = "redis://h/0", store: str = "redis://h/1", once: Any = "order", pool: str = "prefork", **conf: Any
) -> list[tuple[bool, str]]:
    app = Celery("shop", broker=broker, task_cls="semel.celery:Task")
    app.conf.update({**FINE, **conf})
    semel.celery.setup(app, semel.Semel(store))

    @app.task(name="charge", once=once, shared=False)
    def charge(order: str) -> None: ...

    return [(finding.is_error, finding.text) for finding in semel.celery.check(app, pool=pool)]


def test_an_app_with_nothing_wrong() -> None:
    assert findings() == []
    assert findings(broker="amqp://h//") == []


@pytest.mark.parametrize(
    ("settings", "is_error", "words"),
    [
        ({"store": "dir:./x"}, True, "is for one process, and the prefork pool has several"),
        ({"once": {"key": "order", "retention": "30m"}}, True, "its message may come again after 3880 s"),
        ({"broker": "amqp://h//", "once": {"key": "order", "retention": "100s"}}, True, "its message may come again after"),
        ({"broker": "amqp://h//", "once": {"key": "order", "retention": "110s", "lease": "1s"}}, True, "may run for 120 s"),
        ({"task_acks_late": False}, False, "acknowledged before it runs"),
        ({"task_reject_on_worker_lost": False}, False, "set reject_on_worker_lost=True"),
        ({"broker_transport_options": {"visibility_timeout": 60}}, False, "Redis delivers it again after 60 s"),
        ({"broker": "amqp://h//", "task_time_limit": 3600}, False, "RabbitMQ ends a consumer"),
        ({"task_acks_on_failure_or_timeout": False}, False, "acks_on_failure_or_timeout=False"),
        ({"pool": "threads"}, False, "the threads pool does not enforce it"),
        ({"task_time_limit": None}, False, "has no time limit"),
        ({"accept_content": ["json", "pickle"]}, False, "lets pickle in"),
        ({"worker_prefetch_multiplier": 4}, False, "worker_prefetch_multiplier is over 1"),
        ({"store": "memory:"}, False, "forgets everything"),
    ],
)
def test_each_mistake_is_found(settings: dict[str, Any], is_error: bool, words: str) -> None:
    found = findings(**settings)
    assert any(error == is_error and words in text for error, text in found), found


@pytest.mark.parametrize(
    ("once", "message"),
    [("payment", "names no parameter"), (False, "leave `once` out"), ({"name": "x"}, "leave `once` out"),
     ({"key": "order", "retention": "soon"}, "is not a duration")],
)
def test_wrong_terms_are_found_when_a_task_is_declared(once: Any, message: str) -> None:
    app = Celery("shop", broker="memory://", task_cls="semel.celery:Task")
    semel.celery.setup(app, semel.Semel("memory:"))
    with pytest.raises(semel.ConfigError, match=message):

        @app.task(once=once, shared=False)
        def charge(order: str) -> None: ...

        app.finalize()


def test_an_async_task_is_refused() -> None:
    app = Celery("shop", broker="memory://", task_cls="semel.celery:Task")
    with pytest.raises(semel.ConfigError, match="is async"):

        @app.task(once=True, shared=False)
        async def charge() -> None: ...

        app.finalize()


def test_an_app_without_a_store_says_so() -> None:
    app = Celery("shop", broker="memory://", task_cls="semel.celery:Task")

    @app.task(once=True, shared=False)
    def charge() -> None: ...

    with pytest.raises(semel.ConfigError, match="call semel.celery.setup"):
        charge()
