"""Delivering a call twice, at once, and with a crash at every turn."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import os
import signal
import sys
import threading
import time
import traceback
import uuid
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

from .._errors import Again
from .._once import AsyncOnce, Calls, Once, Semel, replaced

_LEASE_SECONDS = 0.2
_SETTLES_WITHIN_SECONDS = 30.0
_LINES_MAX = 200
"""More lines than a function runs that somebody tests so."""


@dataclass
class Crash:
    """One crash: where the process was killed, and what that allows."""

    point: str
    allowed: str
    """``exactly one``, ``at most one`` or ``at least one`` effect, by the function's own terms."""
    _before: list[int]

    def allows(self, effects: int) -> bool:
        """Whether so many effects, counted over all crashes of this loop, are within the promise."""
        own, self._before[0] = effects - self._before[0], effects
        return {"exactly one": own == 1, "at most one": own <= 1, "at least one": own >= 1}[self.allowed]


class Deliver:
    """Delivers calls of functions and tasks that run once, on a store of its own."""

    def __init__(self, directory: Path, url: Optional[str] = None) -> None:
        self._directory = directory
        self._url = url
        self._own: Optional[Semel] = None

    def twice(self, task: Any, *args: Any, **kwargs: Any) -> list[Any]:
        """Delivers a call, and again when it has ended: what each came to, a value or the exception that it raised."""
        subject = _Subject(task, self._semel())
        return [subject.settle(args, kwargs) for _ in range(2)]

    def at_once(self, task: Any, *args: Any, copies: int = 8, **kwargs: Any) -> list[Any]:
        """Delivers copies of a call at the same moment: what each came to."""
        subject, together = _Subject(task, self._semel()), threading.Barrier(copies)
        results: list[Any] = [None] * copies

        def one(number: int) -> None:
            together.wait()
            results[number] = subject.settle(args, kwargs)

        threads = [threading.Thread(target=one, args=(number,)) for number in range(copies)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    def crashes(self, task: Any, *args: Any, **kwargs: Any) -> Iterator[Crash]:
        """Kills a process before the function, after it, after its record, and at each of its lines; delivers again until
        the work is settled, and yields. Each crash meets an empty store, so each is a new piece of work."""
        allowed, before = _allowed(_calls_of(task)), [0]
        for point in _points():
            semel = self._empty()
            if not _is_killed(lambda: _Subject(task, semel).crash(point, args, kwargs)):
                return  # the function has no more lines
            _in_child(lambda: _Subject(task, semel).settle(args, kwargs))
            yield Crash(point, allowed, before)

    def _semel(self) -> Semel:
        if self._own is None:
            self._own = self._empty()
        return self._own

    def _empty(self) -> Semel:
        name = uuid.uuid4().hex
        return Semel(self._url or f"dir:{self._directory}-{name}", namespace=f"test-{name}")


class _Subject:
    """A function or task, on a store of the test's."""

    def __init__(self, task: Any, semel: Semel) -> None:
        self._task = task
        self._calls = _calls_of(task).on(semel, lease=_LEASE_SECONDS)

    def settle(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Delivers until the work is settled: its value, or what it raised."""
        deadline = time.monotonic() + _SETTLES_WITHIN_SECONDS
        while True:
            try:
                return self._deliver(args, kwargs)
            except Again as again:
                if time.monotonic() > deadline:
                    raise
                time.sleep(min(again.retry_after, _LEASE_SECONDS))
            except Exception as error:
                return error

    def crash(self, point: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Delivers once, and kills this process at that point."""
        trace = _Trace(inspect.unwrap(self._calls.function), point)
        sys.settrace(trace.on_call)
        try:
            self._deliver(args, kwargs)
        except Exception:
            pass  # what the function raises is recorded as well
        finally:
            sys.settrace(None)
        if point == "after the record":
            _kill()

    def _deliver(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(self._task, Once):
            once: Once[..., Any] = Once(self._calls)
            return once(*args, **kwargs)
        if isinstance(self._task, AsyncOnce):
            async_once: AsyncOnce[..., Any] = AsyncOnce(self._calls)
            return asyncio.run(async_once(*args, **kwargs))
        # A Celery task, called directly: nothing is published.
        token = replaced.set(self._calls)
        try:
            return self._task(*args, **kwargs)
        finally:
            replaced.reset(token)


class _Trace:
    """Kills the process when a function comes to a point."""

    def __init__(self, function: Callable[..., Any], point: str) -> None:
        self._code = function.__code__
        self._point = point
        self._lines = itertools.count(1)

    def on_call(self, frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code is not self._code:
            return None
        if self._point == "before the function":
            _kill()
        return self.on_event

    def on_event(self, frame: Any, event: str, argument: Any) -> Any:
        if event == "line" and self._point == f"line {next(self._lines)}":
            _kill()
        if event == "return" and self._point == "after the function":
            _kill()
        return self.on_event


def _points() -> Iterator[str]:
    yield from ("before the function", "after the function", "after the record")
    # The first line comes right after "before the function".
    yield from (f"line {number}" for number in range(2, _LINES_MAX))


def _calls_of(task: Any) -> Calls:
    if isinstance(task, (Once, AsyncOnce)):
        return task.calls
    if getattr(task, "once", None) is not None and hasattr(task, "calls"):
        return task.calls()  # type: ignore[no-any-return]
    raise TypeError(f"{task!r} is neither a function decorated with once nor a Celery task with once=: nothing protects it")


def _allowed(calls: Calls) -> str:
    if calls.terms.handler_completes:
        return "exactly one"
    return "at most one" if calls.terms.park else "at least one"


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _is_killed(body: Callable[[], Any]) -> bool:
    return os.WIFSIGNALED(_fork(body))


def _in_child(body: Callable[[], Any]) -> None:
    status = _fork(body)
    assert status == 0, f"a process that was to deliver again ended with {os.waitstatus_to_exitcode(status)}"


def _fork(body: Callable[[], Any]) -> int:
    """Runs in a child of its own, which nothing outlives; its wait status."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # The child uses nothing of what this process has running.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            body()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1]
