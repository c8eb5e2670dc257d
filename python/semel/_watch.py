"""What is told of each call: one log line, two metrics, and a span where OpenTelemetry is installed."""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time
from typing import Any, Iterator, Optional, Protocol, TypeVar

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

    @contextlib.contextmanager
    def running(self, run: _native.Run) -> Iterator[None]:
        with span(self._calls.route, run, self._delivery):
            yield

    def ended(self, word: str, outcome: T, ended: Optional[_native.Ended] = None) -> T:
        """Tells how the call ended; gives its outcome back."""
        self._tell(_word(word, ended), ended)
        return outcome

    def raised(self, ended: Optional[_native.Ended], error: BaseException) -> None:
        """Tells of a run whose function raised."""
        self._tell(_word("failed", ended), ended, error)

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
    """Counters of ``prometheus_client``, if it is installed."""

    def __init__(self) -> None:
        try:
            from prometheus_client import Counter, Histogram
        except ImportError:
            self.calls: Any = None
            return
        self.calls = Counter("semel_calls", "Calls of functions that run once, by what became of them", ["task", "outcome"])
        self.time: Any = Histogram("semel_call_seconds", "How long calls took", ["task"])


@functools.cache
def _counters() -> _Counters:
    return _Counters()


_making = threading.Lock()


def count(task: str, outcome: str, elapsed: float) -> None:
    """Counts a call in the default registry of ``prometheus_client``."""
    if not _counters.cache_info().currsize:
        with _making:  # a registry takes a name once
            _counters()
    counters = _counters()
    if counters.calls is not None:
        counters.calls.labels(task, outcome).inc()
        counters.time.labels(task).observe(elapsed)
