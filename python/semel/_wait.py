"""Waiting for the core: on this thread, on the hub's thread pool under green threads, or on an event loop."""

from __future__ import annotations

import asyncio
import functools
import importlib
import sys
from typing import Any, Callable, TypeVar

from . import _native

T = TypeVar("T")

_GREEN_THREADS_MAX = 512


def native(call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Makes a call that waits without the interpreter's lock. Under gevent and eventlet all green threads would stand
    still, so it waits on a thread of its own."""
    return _green(_others, call, args, kwargs) if _is_green() else call(*args, **kwargs)


def native_claim(call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """The same for a call that may wait for another run to end: however many there are, they must not take the last
    thread from the call that ends it."""
    return _green(_claims, call, args, kwargs) if _is_green() else call(*args, **kwargs)


def _is_green() -> bool:
    loaded = sys.modules
    return ("gevent.monkey" in loaded and _is_gevent()) or ("eventlet.patcher" in loaded and _is_eventlet())


def _is_gevent() -> bool:
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


def _is_eventlet() -> bool:
    patcher = sys.modules.get("eventlet.patcher")
    return patcher is not None and bool(patcher.is_monkey_patched("thread"))


def _green(pool: Callable[[], Any], call: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    made: T = pool().apply(call, args, kwargs) if _is_gevent() else _on_eventlet(call, args, kwargs)
    return made


def _gevent_pool() -> Any:
    threadpool: Any = importlib.import_module("gevent.threadpool")
    return threadpool.ThreadPool(_GREEN_THREADS_MAX)


@functools.cache
def _claims() -> Any:
    return _gevent_pool()


@functools.cache
def _others() -> Any:
    return _gevent_pool()


def _on_eventlet(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """On a new thread each time: eventlet's own pool has twenty, and starts all of them at once."""
    patcher: Any = importlib.import_module("eventlet.patcher")
    hubs: Any = importlib.import_module("eventlet.hubs")
    reader, writer = patcher.original("socket").socketpair()
    answers: list[Callable[[], Any]] = []

    def work() -> None:
        try:
            value = call(*args, **kwargs)
            answers.append(lambda: value)
        except BaseException as error:
            answers.append(functools.partial(_raise, error))
        finally:
            writer.close()

    patcher.original("_thread").start_new_thread(work, ())
    try:
        hubs.trampoline(reader, read=True)
    finally:
        reader.close()
    return answers[0]()


def _raise(error: BaseException) -> Any:
    raise error


async def on_loop(start: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Starts a call that answers at once, or by a callback on the running loop, and waits for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def answered(answer: Any) -> None:
        if not future.done():
            future.set_result(answer)
        elif isinstance(answer, _native.Run):
            answer.give_back()  # the caller was cancelled while it asked: nothing ran

    at_once = start(loop, answered, *args, **kwargs)
    if at_once is not None:
        return at_once
    try:
        answer = await future
    except asyncio.CancelledError:
        if future.done() and not future.cancelled() and isinstance(future.result(), _native.Run):
            future.result().give_back()  # granted at the very moment of the cancellation: nothing ran
        raise
    if isinstance(answer, BaseException):
        raise answer
    return answer
