"""The core of one process: opened by the first call, never taken along through a fork, drained at exit."""

from __future__ import annotations

import asyncio
import atexit
import logging
import multiprocessing
import multiprocessing.util
import os
import socket
import threading
import weakref
from concurrent.futures import Future
from typing import Optional

from . import _native
from ._errors import ConfigError
from ._wait import native

_log = logging.getLogger("semel")

_DRAIN_SECONDS = 10.0
"""How long a process that ends waits for the store to take what ran."""


class HomeSlot:
    """Holds the core of this process."""

    def __init__(self, url: str, cache: float, record_within: float) -> None:
        self.url = url
        self._cache = cache
        self._record_within = record_within
        self._home: Optional[_native.Home] = None
        self._opening: Optional[Future[_native.Home]] = None
        self._opened_before_fork = False
        self._lock = threading.RLock()  # a signal's handler may call while this thread opens
        _slots.add(self)

    def get(self) -> _native.Home:
        """The core; opens the store at the first call."""
        home = self._home
        if home is not None:
            return home
        with self._lock:
            if self._home is None:
                opened = self._open()
                self._home = self._home or opened
            return self._home

    async def get_async(self) -> _native.Home:
        """The same on an event loop, which goes on meanwhile: one thread opens the store for all calls that wait."""
        if self._home is not None:
            return self._home
        opening = self._opening
        if opening is None or opening.done():
            opening = self._opening = Future()
            opening.set_running_or_notify_cancel()  # a call that is cancelled leaves it to the others
            threading.Thread(target=self._open_for, args=(opening,), name="semel-open").start()
        return await asyncio.wrap_future(opening)

    def _open_for(self, waiting: Future[_native.Home]) -> None:
        try:
            waiting.set_result(self.get())
        except BaseException as error:
            waiting.set_exception(error)

    def is_open(self) -> bool:
        return self._home is not None

    def _open(self) -> _native.Home:
        if self._opened_before_fork and self.url.startswith("dir:"):
            raise ConfigError(
                f"the store {self.url} belongs to the process that opened it, and process {os.getpid()} was forked from "
                f"that one: use postgres:// or redis:// for several processes, or open the store after the fork"
            )
        home = native(_native.Home.open, self.url, self._cache, self._record_within, socket.gethostname())
        if multiprocessing.parent_process() is not None:
            # Such a process ends without atexit.
            multiprocessing.util.Finalize(None, drain_all, exitpriority=10)
        return home

    def set_aside(self) -> None:
        """In a forked child: the parent's core is left alone for ever; to drop it would wait for the parent's threads."""
        if self._home is not None:
            _left_alone.append(self._home)
            self._opened_before_fork = True
        self._home = None
        self._opening = None
        self._lock = threading.RLock()

    def drain(self, within: float = _DRAIN_SECONDS) -> None:
        """Waits until the store has what ran, and names what it does not take."""
        if self._home is not None:
            _drain(self._home, within)

    def __del__(self) -> None:
        """A store that nobody uses any more may still have to take what ran."""
        home = getattr(self, "_home", None)
        if home is not None and home.pid == os.getpid() and home.pending_count():
            _unfinished.append(home)


_slots: weakref.WeakSet[HomeSlot] = weakref.WeakSet()
_unfinished: list[_native.Home] = []
_left_alone: list[_native.Home] = []


def _drain(home: _native.Home, within: float) -> None:
    if home.pid != os.getpid():
        return
    for key, fence, status in home.drain(within):
        _log.error(
            "the outcome of %s is not recorded: it ran (fence %s, status %s), and the store did not take it before the "
            "process ended; `semel records resolve %s --as succeeded --fence %s` repairs it",
            key, fence, status, key, fence,
        )  # fmt: skip


def _after_fork_in_child() -> None:
    _native.forget_callbacks()
    for slot in list(_slots):
        slot.set_aside()


def drain_all(within: float = _DRAIN_SECONDS) -> None:
    """Waits for every store of this process."""
    for slot in list(_slots):
        slot.drain(within)
    for home in _unfinished:
        _drain(home, within)


os.register_at_fork(after_in_child=_after_fork_in_child)
# Last in, first out: callbacks end when everything has been drained.
atexit.register(_native.close_callbacks)
atexit.register(drain_all)
