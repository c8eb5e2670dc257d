"""Waiting for the core: on this thread, on the hub's thread pool under green threads, or on an event loop."""

from __future__ import annotations

import asyncio
import functools
import sys
from typing import Any, Callable, TypeVar

from . import _native

T = TypeVar("T")

_GREEN_WAITERS_MAX = 512


def native(call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Makes a call that waits without the interpreter's lock. Under gevent and eventlet all green threads would stand
    still, so it waits on the hub's own threads."""
    gevent = sys.modules.get("gevent.monkey")
    if gevent is not None and gevent.is_module_patched("threading"):
        import gevent as hub  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return _gevent_pool(hub).apply(call, args, kwargs)  # type: ignore[no-any-return]
    patcher = sys.modules.get("eventlet.patcher")
    if patcher is not None and patcher.is_monkey_patched("thread"):
        from eventlet import tpool  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return tpool.execute(call, *args, **kwargs)  # type: ignore[no-any-return]
    return call(*args, **kwargs)


@functools.cache
def _gevent_pool(hub: Any) -> Any:
    """Threads of our own: those that wait for a run must not take the last place from the one that ends it."""
    from gevent.threadpool import ThreadPool  # type: ignore[import-untyped,import-not-found,unused-ignore]

    return ThreadPool(_GREEN_WAITERS_MAX)


async def on_loop(start: Callable[..., None], *args: Any, **kwargs: Any) -> Any:
    """Starts a call that answers by a callback on the running loop, and waits for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def answered(answer: Any) -> None:
        if not future.done():
            future.set_result(answer)
        elif isinstance(answer, _native.Run):
            answer.give_back()  # the caller was cancelled while it asked: nothing ran

    start(loop, answered, *args, **kwargs)
    try:
        answer = await future
    except asyncio.CancelledError:
        if future.done() and not future.cancelled() and isinstance(future.result(), _native.Run):
            future.result().give_back()  # granted at the very moment of the cancellation: nothing ran
        raise
    if isinstance(answer, BaseException):
        raise answer
    return answer
