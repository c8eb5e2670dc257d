"""The run that is going on, and its steps."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from dataclasses import dataclass
from typing import Any, Awaitable, Callable, TypeVar, Union, overload

from . import _native
from ._errors import Error
from ._payload import Encode, decode, encode, return_annotation
from ._wait import native, on_loop

T = TypeVar("T")


@dataclass(frozen=True)
class StepInfo:
    """What a step's function is told."""

    key: str
    """The step's own key, the same in every run of the work: hand it to the downstream as its idempotency key."""


class Run:
    """One execution under a lease."""

    def __init__(self, core: _native.Run, is_async: bool, hook: Encode | None, store: str = "") -> None:
        self.core = core
        self.is_async = is_async
        self.hook = hook
        self.store = store
        """The URL of the store that has its record."""
        self.completed_in: Any = None
        """The transaction, connection or cursor in which it was completed."""

    @property
    def key(self) -> str:
        """The work's key."""
        return self.core.key

    @property
    def fence(self) -> int:
        """A rising number: a downstream can refuse a lower one than it has seen."""
        return self.core.fence

    @property
    def attempt(self) -> int:
        """Which run of the work this is, from 1."""
        return self.core.attempt

    @property
    def stale(self) -> bool:
        """Whether this run was overtaken or timed out: nothing that it says counts any more."""
        return self.core.stale

    def step(self, name: str, effect: Callable[[StepInfo], T], returns: Any) -> T:
        begun = native(self.core.step, name)
        if begun.memo is not None:
            return decode(begun.memo, returns)  # type: ignore[no-any-return]
        try:
            value = effect(StepInfo(begun.key))
            result = encode(value, self.hook)
        except BaseException:
            begun.failed()
            raise
        native(begun.done, result)
        return value

    async def step_async(self, name: str, effect: Callable[[StepInfo], Any], returns: Any) -> Any:
        begun = await on_loop(self.core.step_async, name)
        if begun.memo is not None:
            return decode(begun.memo, returns)
        try:
            value = effect(StepInfo(begun.key))
            if inspect.isawaitable(value):
                value = await value
            result = encode(value, self.hook)
        except BaseException:
            begun.failed()
            raise
        await on_loop(begun.done_async, result)
        return value


current: contextvars.ContextVar[Run] = contextvars.ContextVar("semel_run")


def run() -> Run:
    """The run that is going on: its key, fence and attempt."""
    try:
        return current.get()
    except LookupError:
        raise Error(
            "there is no run here: semel.run(), step() and complete() work inside a function decorated with once, on the "
            "thread or task that runs it"
        ) from None


def _is_on_loop() -> bool:
    """Whether this is the loop's own thread: one of ``asyncio.to_thread`` does steps at once."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@overload
def step(name: str, effect: Callable[[StepInfo], Awaitable[T]], *, returns: Any = ...) -> Awaitable[T]: ...
@overload
def step(name: str, effect: Callable[[StepInfo], T], *, returns: Any = ...) -> T: ...


def step(name: str, effect: Callable[[StepInfo], Any], *, returns: Any = None) -> Union[Any, Awaitable[Any]]:
    """Does a named part of the run once. A part that was done in an earlier run of the same work is not done again: its
    result is given back, as ``returns`` or the annotation of ``effect`` says. In async code it is awaited."""
    going_on = run()
    returns = return_annotation(effect) if returns is None else returns
    if going_on.is_async and _is_on_loop():
        return going_on.step_async(name, effect, returns)
    return going_on.step(name, effect, returns)
