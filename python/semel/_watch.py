"""What is told of each call: one log line, two metrics, and a span where OpenTelemetry is installed."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import Any, Optional, Protocol, TypeVar

from . import _native
from ._otel import span

T = TypeVar("T")

log = logging.getLogger("semel")

_WARNS = frozenset({"mismatched", "stale", "parked", "unrecorded", "unread", "store_unavailable"})


class _Named(Protocol):
    route: str


class Watch:
    """Follows one call from its arrival to its outcome."""

    def __init__(self, calls: _Named, **delivery: Any) -> None:
        self._calls = calls
        self._delivery = delivery
        self._began = time.monotonic()

    def running(self, run: _native.Run) -> contextlib.AbstractContextManager[None]:
        return span(self._calls.route, run, self._delivery)

    def ended(self, word: str, outcome: T, ended: Optional[_native.Ended] = None) -> T:
        """Tells how the call ended; gives its outcome back."""
        self._tell(_word(word, ended), ended)
        return outcome

    def raised(self, ended: Optional[_native.Ended], error: BaseException) -> None:
        """Tells of a run whose function raised."""
        self._tell("retryable" if ended is None else _word("failed", ended), ended, error)

    def _tell(self, word: str, ended: Optional[_native.Ended], error: Optional[BaseException] = None) -> None:
        elapsed = time.monotonic() - self._began
        count(self._calls.route, word, elapsed)
        level = logging.WARNING if word in _WARNS else logging.INFO
        if not log.isEnabledFor(level):
            return
        said: dict[str, Any] = {"task": self._calls.route, **self._delivery}
        if ended is not None:
            said["key"] = ended.key
        said["outcome"] = word
        if ended is not None and ended.attempt:
            said.update(fence=ended.fence, attempt=ended.attempt)
        said["elapsed_ms"] = round(elapsed * 1000, 1)
        if error is not None:
            said["error"] = type(error).__qualname__
        text = " ".join(f"{name}={value}" for name, value in said.items())
        log.log(level, text, extra={"semel": said})


def _word(word: str, ended: Optional[_native.Ended]) -> str:
    """The word in logs and metrics: a run's own, or what its record says of it."""
    if ended is None:
        return word
    if ended.word == "failed":
        return "parked" if ended.is_parked else "in_doubt" if ended.in_doubt else "retryable"
    if ended.word == "ran" and ended.is_final:
        return "failed"
    return ended.word


class _Counters:
    """Counters of ``prometheus_client``."""

    def __init__(self, prometheus: Any) -> None:
        calls = "Calls of functions that run once, by what became of them"
        self._calls = prometheus.Counter("semel_calls", calls, ["task", "outcome"])
        self._time = prometheus.Histogram("semel_call_seconds", "How long calls took", ["task"])
        self._of: dict[tuple[str, str], tuple[Any, Any]] = {}

    def count(self, task: str, outcome: str, elapsed: float) -> None:
        counters = self._of.get((task, outcome))
        if counters is None:
            counters = self._of[task, outcome] = self._calls.labels(task, outcome), self._time.labels(task)
        counters[0].inc()
        counters[1].observe(elapsed)


_making = threading.Lock()
_counters: Optional[_Counters] = None
_is_counted: Optional[bool] = None
"""Whether ``prometheus_client`` is installed; not known before the first call."""


def count(task: str, outcome: str, elapsed: float) -> None:
    """Counts a call in the default registry of ``prometheus_client``, if that is installed."""
    if _is_counted is None:
        _make_counters()
    if _counters is not None:
        _counters.count(task, outcome, elapsed)


def _make_counters() -> None:
    global _counters, _is_counted
    with _making:  # a registry takes a name once
        if _is_counted is None:
            try:
                import prometheus_client
            except ImportError:
                _is_counted = False
            else:
                _counters = _Counters(prometheus_client)
                _is_counted = True
