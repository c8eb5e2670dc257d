"""Joining an app and a store."""

from __future__ import annotations

from typing import Any

from celery import signals

from .._errors import ConfigError
from .._home import drain_all
from .._once import Semel
from ._check import check

_ATTRIBUTE = "_semel"


def setup(app: Any, semel: Semel) -> None:
    """Lets the tasks of ``app`` that say ``once`` run once, on this store. Workers check their settings when they start
    and refuse to start on one that breaks a promise."""
    setattr(app, _ATTRIBUTE, semel)
    # Strong references: nobody else holds these functions.
    signals.worker_init.connect(_on_worker_init, weak=False, dispatch_uid="semel")
    signals.worker_process_shutdown.connect(_on_process_shutdown, weak=False, dispatch_uid="semel")


def semel_of(app: Any) -> Semel:
    """The store of an app."""
    semel = getattr(app, _ATTRIBUTE, None)
    if not isinstance(semel, Semel):
        raise ConfigError("a task says once, but its app has no store: call semel.celery.setup(app, semel.Semel(url))")
    return semel


def _on_worker_init(sender: Any, **_: Any) -> None:
    app = sender.app
    if getattr(app, _ATTRIBUTE, None) is None:
        return
    findings = check(app, pool=_pool_name(sender), concurrency=sender.concurrency)
    for finding in findings:
        finding.log()
    errors = [finding for finding in findings if finding.is_error]
    if errors:
        # The worker catches exceptions of its signals, but not this one.
        raise SystemExit("semel: this worker does not start:\n" + "\n".join(f"  {finding.text}" for finding in errors))


def _pool_name(worker: Any) -> str:
    pool = worker.pool_cls
    return pool if isinstance(pool, str) else pool.__module__.rsplit(".", 1)[-1]


def _on_process_shutdown(**_: Any) -> None:
    """A pool's process ends without atexit."""
    drain_all()
