"""Whether an app's settings let its tasks keep their promise: looked at when a worker starts, and by ``semel check``."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Iterator, Optional

from .._once import Terms

_log = logging.getLogger("semel")

_REDIS_VISIBILITY_SECONDS = 3600.0
"""What kombu takes when nothing is said."""

_RESTORE_SECONDS, _RESTORE_EVERY = 10, 10
"""kombu's Redis transport looks for unacknowledged messages every tenth time of ten seconds."""

_STORES = ("postgres:", "postgresql:", "redis:", "rediss:", "firestore:", "dir:", "memory:")

_RABBITMQ_CONSUMER_SECONDS = 1800.0
"""RabbitMQ closes the channel of a consumer that leaves a message unacknowledged for longer."""


@dataclass(frozen=True)
class Finding:
    """Something that a worker should know."""

    is_error: bool
    text: str

    def log(self) -> None:
        _log.log(logging.ERROR if self.is_error else logging.WARNING, self.text)


def check(app: Any, *, pool: Optional[str] = None, concurrency: Optional[int] = None) -> list[Finding]:
    """All mistakes of an app, errors first. Nothing is opened and nothing is sent."""
    app.finalize()
    found = list(_App(app, pool, concurrency).findings())
    return sorted(found, key=lambda finding: not finding.is_error)


def _error(text: str) -> Finding:
    return Finding(True, text)


def _warning(text: str) -> Finding:
    return Finding(False, text)


class _App:
    def __init__(self, app: Any, pool: Optional[str], concurrency: Optional[int]) -> None:
        from ._setup import semel_of

        self.conf = app.conf
        self.url = semel_of(app).url
        self.pool = str(pool or app.conf.worker_pool or "prefork")
        self.concurrency = concurrency or app.conf.worker_concurrency or 2
        self.broker = str(app.conf.broker_url or app.connection_for_write().as_uri())
        self.tasks = [task for task in app.tasks.values() if getattr(task, "once", None) is not None]

    def findings(self) -> Iterator[Finding]:
        yield from self._whole_app()
        for task in sorted(self.tasks, key=lambda task: str(task.name)):
            yield from self._task(task)

    def _whole_app(self) -> Iterator[Finding]:
        if not self.url.startswith(_STORES):
            # The rest of the URL may hold a password.
            yield _error(f"there is no store for {self.url.split(':')[0]}: use postgres://, redis://, firestore:// or dir:")
        if self.url.startswith("dir:") and self.pool == "prefork":
            yield _error(
                f"the store {self.url} is for one process, and the prefork pool has several: use postgres:// or redis://, "
                f"or start the worker with --pool threads or solo"
            )
        if self.url.startswith("memory:"):
            yield _warning("the store memory: forgets everything when the process ends: use it in tests only")
        for format in {"pickle", "yaml"} & set(self.conf.accept_content or ()):
            yield _warning(f"accept_content lets {format} in: whoever can publish a message can run code in the worker")
        if self._is_redis() and (self.conf.worker_prefetch_multiplier or 0) > 1:
            yield _warning(
                "worker_prefetch_multiplier is over 1 on Redis: messages age behind a slow one and are delivered a second "
                "time; set it to 1"
            )

    def _task(self, task: Any) -> Iterator[Finding]:
        from ._task import terms_of

        name, terms, hard = task.name, terms_of(type(task)), task.time_limit or self.conf.task_time_limit
        yield from self._acknowledgement(name, task)
        yield from self._times(name, task, terms, hard)
        if hard is None and task.soft_time_limit is None and self.conf.task_soft_time_limit is None:
            yield _warning(f"{name} has no time limit: a run that hangs keeps its lease for an hour; set time_limit")
        elif self.pool not in ("prefork", "processes", "gevent"):
            yield _warning(f"{name} has a time limit, and the {self.pool} pool does not enforce it")

    def _acknowledgement(self, name: str, task: Any) -> Iterator[Finding]:
        late = task.acks_late
        lost = task.reject_on_worker_lost
        if not late:
            yield _warning(f"{name} is acknowledged before it runs: a worker that dies loses it; set acks_late=True")
        elif not lost and self.pool == "prefork":
            yield _warning(
                f"{name} is lost when its pool process is killed: set reject_on_worker_lost=True beside acks_late"
            )
        if late and not task.acks_on_failure_or_timeout:
            yield _warning(
                f"{name} has acks_on_failure_or_timeout=False: a run that hits its hard limit comes again each time; limit "
                f'that with once={{"max_attempts": ...}}'
            )

    def _times(self, name: str, task: Any, terms: Terms, hard: Optional[float]) -> Iterator[Finding]:
        horizon = self._horizon(task)
        if terms.retention < horizon:
            yield _error(
                f"{name} remembers its outcome for {terms.retention:g} s, and its message may come again after "
                f"{horizon:g} s: raise retention in once={{...}}"
            )
        if hard is not None and hard >= terms.retention:
            yield _error(
                f"{name} may run for {hard:g} s, and its record is kept for {terms.retention:g} s only: raise retention in "
                f"once={{...}}, or lower time_limit"
            )
        if self._is_redis() and hard is not None and self._visibility() < hard:
            yield _warning(
                f"{name} may run for {hard:g} s, and Redis delivers it again after {self._visibility():g} s: copies wait "
                f"while it runs; raise visibility_timeout"
            )
        if self._is_rabbitmq() and hard is not None and hard > _RABBITMQ_CONSUMER_SECONDS:
            yield _warning(
                f"{name} may run for {hard:g} s, and RabbitMQ ends a consumer that holds a message for longer than 30 "
                f"minutes: raise consumer_timeout of the server"
            )

    def _horizon(self, task: Any) -> float:
        """How late a message may come again, by what the settings say."""
        backoff = float(getattr(task, "retry_backoff_max", 600)) if getattr(task, "autoretry_for", ()) else 0.0
        delay = max(backoff, float(task.default_retry_delay or 0))
        if not self._is_redis():
            return delay
        options: dict[str, Any] = self.conf.broker_transport_options or {}
        interval = float(options.get("unacked_restore_interval", _RESTORE_SECONDS))
        sweep = interval * float(options.get("unacked_restore_throttle", _RESTORE_EVERY))
        return self._visibility() + sweep + delay

    def _visibility(self) -> float:
        options: dict[str, Any] = self.conf.broker_transport_options or {}
        return float(options.get("visibility_timeout", _REDIS_VISIBILITY_SECONDS))

    def _is_redis(self) -> bool:
        return self.broker.startswith(("redis", "rediss", "sentinel"))

    def _is_rabbitmq(self) -> bool:
        return self.broker.startswith(("amqp", "pyamqp"))
