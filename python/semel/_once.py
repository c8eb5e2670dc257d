"""``Semel`` and ``once``: a function that runs once per key."""

from __future__ import annotations

import contextvars
import copy
import functools
import inspect
import json
from typing import Any, Callable, Coroutine, Generic, Iterable, Optional, ParamSpec, TypeVar, Union, overload

from . import _native, _watch
from ._bind import Binder
from ._duration import Duration, seconds
from ._errors import (
    Again,
    Busy,
    ConfigError,
    Error,
    Failed,
    Full,
    LeftOpen,
    Mismatched,
    NotCompleted,
    NotKept,
    NotYet,
    Parked,
    Stale,
    StepRefused,
    StoreUnavailable,
    Unread,
)
from ._firestore_records import Already
from ._home import HomeSlot
from ._outcomes import Outcome, Ran, Replayed
from ._payload import Encode, decoder, encode, return_annotation
from ._run import Run, current
from ._transaction import is_left_open
from ._wait import native, native_claim, on_loop

P = ParamSpec("P")
T = TypeVar("T")

Key = Union[str, Iterable[str], None]
Exceptions = tuple[type[BaseException], ...]


class Semel:
    """A store, and the functions that run once on it. Nothing is opened before the first call."""

    def __init__(
        self,
        url: str,
        *,
        namespace: str = "default",
        cache: Duration = "5s",
        record_within: Duration = "10s",
    ) -> None:
        """``url``: ``postgres://…``, ``redis://…``, ``firestore://PROJECT``, ``dir:PATH`` (one process) or ``memory:``
        (tests).

        ``namespace`` keeps installations apart that share a store. ``cache``: how long a value that this process has
        seen recorded is answered from memory. ``record_within``: how long a call waits for the store to take its outcome.
        """
        said: Any = url  # whatever callers without a type checker give
        if not isinstance(said, str) or ":" not in said:
            raise ConfigError(f"{url!r} names no store: use postgres://…, redis://…, firestore://…, dir:PATH "
                              f"or memory:")
        self.namespace = namespace
        self.url = url
        self.home = HomeSlot(url, seconds("cache", cache), seconds("record_within", record_within))

    @overload
    def once(self, function: Callable[P, Coroutine[Any, Any, T]], /) -> AsyncOnce[P, T]: ...  # type: ignore[overload-overlap]
    @overload
    def once(self, function: Callable[P, T], /) -> Once[P, T]: ...
    @overload
    def once(self, /, **terms: Any) -> OnceDecorator: ...

    def once(self, function: Optional[Callable[..., Any]] = None, /, **terms: Any) -> Any:
        """Lets a function run once per key. See :class:`Terms` for what may be said."""
        decorate = OnceDecorator(self, Terms(**terms))
        return decorate if function is None else decorate(function)


class Terms:
    """On which terms a function runs.

    ``key``: a parameter's name, a JSON pointer that begins with one (``/order/id``), or several; all arguments by default.
    ``name``: the route's name, ``module.qualname`` by default; renaming it forgets its keys.
    ``retention``: how long an outcome is remembered. ``lease``: how soon work is taken over whose process died.
    ``timeout``: how long the function may take; past that its run is in doubt, and another may begin.
    ``wait``: how long a duplicate waits for the running one. ``in_doubt``: ``"retry"`` runs again what may have happened,
    ``"park"`` waits for a person. ``max_attempts``: runs before the work is parked; 0 is no limit.
    ``final``: exceptions that fail for good. ``in_doubt_on``: exceptions after which the effect may have happened.
    ``undone``: exceptions that say that nothing happened; under ``"park"`` every other one is in doubt.
    ``completes="handler"``: the function calls :func:`semel.complete` in its own transaction.
    ``private``: records do not say which call they are of: their labels leave out the key's parts.
    ``encode``: asked about values that JSON does not know. ``strict``: the first caller, too, gets its value by way of
    JSON and the return annotation.
    """

    def __init__(
        self,
        *,
        key: Key = None,
        name: Optional[str] = None,
        retention: Duration = "24h",
        lease: Duration = "30s",
        timeout: Duration = "1h",
        wait: Duration = "5s",
        in_doubt: str = "retry",
        max_attempts: int = 0,
        backoff: Duration = 0,
        backoff_max: Duration = "1h",
        final: Iterable[type[BaseException]] = (),
        undone: Iterable[type[BaseException]] = (),
        in_doubt_on: Iterable[type[BaseException]] = (),
        completes: str = "run",
        private: bool = False,
        encode: Optional[Encode] = None,
        strict: bool = False,
    ) -> None:
        self.key = key
        self.name = name
        self.retention = seconds("retention", retention)
        self.lease = seconds("lease", lease)
        self.timeout = seconds("timeout", timeout)
        self.wait = seconds("wait", wait)
        self.park = _one_of("in_doubt", in_doubt, retry=False, park=True)
        if max_attempts < 0:
            raise ConfigError(f"max_attempts={max_attempts}: say how many runs before the work is parked; 0 is no limit")
        self.max_attempts = max_attempts
        self.backoff = (seconds("backoff", backoff), seconds("backoff_max", backoff_max))
        self.final = exceptions("final", final)
        self.undone = exceptions("undone", undone)
        self.in_doubt_on = exceptions("in_doubt_on", in_doubt_on)
        self.handler_completes = _one_of("completes", completes, run=False, handler=True)
        self.private = private
        self.encode = encode
        self.strict = strict
        self.source = "python"
        """Who calls, as records say it."""

    def native(self, namespace: str, route: str, rule: list[str]) -> _native.Terms:
        return _native.Terms(
            namespace,
            route,
            rule,
            lease=self.lease,
            retention=self.retention,
            timeout=self.timeout,
            wait=self.wait,
            park=self.park,
            max_attempts=self.max_attempts,
            backoff=self.backoff,
            handler_completes=self.handler_completes,
            source=self.source,
            private=self.private,
        )

    def kind(self, error: BaseException) -> str:
        """What an exception of the function says about its effect."""
        if isinstance(error, self.final):
            return "final"
        if isinstance(error, self.undone):
            return "retryable"
        if isinstance(error, StepRefused):
            return "final" if error.is_final else "in_doubt"
        if self.park or isinstance(error, (Stale, *self.in_doubt_on)) or not isinstance(error, Exception):
            return "in_doubt"
        return "retryable"


class OnceDecorator:
    """What ``once(…)`` gives: decorate with it."""

    def __init__(self, semel: Semel, terms: Terms) -> None:
        self._semel = semel
        self._terms = terms

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, T]]) -> AsyncOnce[P, T]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, function: Callable[P, T]) -> Once[P, T]: ...

    def __call__(self, function: Callable[..., Any]) -> Union[AsyncOnce[..., Any], Once[..., Any]]:
        is_async = inspect.iscoroutinefunction(function)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ConfigError(f"{function.__qualname__} is a generator: it has no one value to remember; decorate what "
                              f"consumes it")
        calls = Calls(self._semel, function, self._terms)
        return AsyncOnce(calls) if is_async else Once(calls)


class Calls:
    """The calls of one function: what they are named by, and what they come to."""

    def __init__(self, semel: Semel, function: Callable[..., Any], terms: Terms, *, route: str = "") -> None:
        self.function = function
        self.route = route or terms.name or f"{function.__module__}.{function.__qualname__}"
        self.terms = terms
        self.semel = semel
        if terms.handler_completes and not semel.url.startswith(("postgres:", "postgresql:", "firestore:")):
            raise ConfigError(
                f"{self.route}: completes='handler' needs a postgres:// or firestore:// store, in the database of the "
                f"function's own transaction; in tests, name one in SEMEL_TEST_STORE"
            )
        binder = Binder(function, terms.key, self.route, terms.encode)
        self.payloads = binder.payloads
        """What the key's rule reads, and what is compared between repeats, of a call's args and kwargs."""
        self.native = terms.native(semel.namespace, self.route, binder.rule)
        self._decode = decoder(return_annotation(function))

    def on(self, semel: Semel, **changed: Any) -> Calls:
        """The same calls on another store, with other terms."""
        terms = copy.copy(self.terms)
        vars(terms).update(changed)
        return Calls(semel, self.function, terms, route=self.route)

    def key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        return self.native.key(*self.payloads(args, kwargs))

    def ending(self, value: Any, run: Run) -> tuple[str, Optional[bytes]]:
        """How a run ends that returned a value."""
        if run.completed_in is not None and is_left_open(run.completed_in):
            raise LeftOpen(f"{self.route} returned while the transaction was open in which semel.complete wrote, so nobody "
                           f"knows yet whether it took effect: begin and commit it inside the function")
        if inspect.isawaitable(value) or inspect.isgenerator(value):
            close = getattr(value, "close", None)
            if close is not None:
                close()
            raise ConfigError(f"{self.route} returned a {type(value).__name__}, which has not run: decorate the function "
                              f"that awaits or consumes it")
        try:
            return "ok", encode(value, self.terms.encode)
        except Exception as refused:  # the effect has happened, whatever its value's own encoder says
            _watch.log.warning("%s: the value is not kept, so duplicates raise semel.NotKept: %s", self.route, refused)
            return "ok", None

    def failing(self, error: BaseException) -> tuple[str, bytes]:
        """How a run ends that raised."""
        return self.terms.kind(error), _written(error)

    def ran(self, value: Any, ended: _native.Ended, run: Run) -> Any:
        """What the caller hears whose own run returned a value: the outcome."""
        if ended.word in ("ran", "unrecorded") and not ended.is_final:
            if ended.body is not None and (self.terms.strict or self.terms.handler_completes):
                value = self._value(ended)
            return Ran(value, recorded=ended.word == "ran")
        if ended.word == "failed" and self.terms.handler_completes and not ended.is_parked:
            said = "without calling semel.complete" if run.completed_in is None else "and its transaction has not committed"
            return NotCompleted(f"{self.route} returned {said}: {_NOT_COMPLETED}")
        return self.heard(ended)

    def heard(self, ended: _native.Ended) -> Any:
        """The outcome of a call that did not run itself, or whose run does not count."""
        if ended.word in ("ran", "replayed", "unrecorded"):
            if ended.is_final:
                return self._failed(ended)
            return NotKept(_NOT_KEPT) if ended.body is None else Replayed(self._value(ended))
        if ended.word == "failed":
            if ended.is_parked:
                return Parked(f"{self.route}: {_PARKED}")
            text = (ended.body or b"").decode(errors="replace")
            return NotYet(f"{self.route}: the run that this call waited for failed: {text}", ended.retry_after or 1.0)
        return _OUTCOMES[ended.word](self.route, ended.retry_after)

    def _value(self, ended: _native.Ended) -> Any:
        body = ended.body
        return self._decode(body) if body else None

    def _failed(self, ended: _native.Ended) -> Failed:
        said = json.loads(ended.body or b"{}")
        name = said.get("exception", "")
        again = next((kind for kind in self.terms.final if _name(kind) == name), None)
        exception = _made_again(again, said) if again else None
        return Failed(f"{self.route} failed for good: {name}: {said.get('message', '')}", name, exception)


replaced: contextvars.ContextVar[Optional[Calls]] = contextvars.ContextVar("semel_calls", default=None)
"""What stands for the calls of a Celery task while a test delivers it on a store of its own."""


class _Decorated:
    """What both kinds of decorated functions share."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        functools.update_wrapper(self, calls.function)  # type: ignore[arg-type]

    def key(self, *args: Any, **kwargs: Any) -> str:
        """The key of a call."""
        return self.calls.key(args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        own: Any = self
        return self if instance is None else functools.partial(own, instance)


class Once(_Decorated, Generic[P, T]):
    """A function that runs once per key."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return value_of(self.outcome(*args, **kwargs))  # type: ignore[no-any-return]

    def outcome(self, *args: P.args, **kwargs: P.kwargs) -> Outcome[T]:
        """What became of the call; raises only what the function raises."""
        payloads = self.calls.payloads(args, kwargs)
        call = functools.partial(self.calls.function, *args, **kwargs)
        return run_once(self.calls, payloads, call, _watch.Watch(self.calls))  # type: ignore[no-any-return]


class AsyncOnce(_Decorated, Generic[P, T]):
    """An async function that runs once per key."""

    _is_coroutine = True

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        return value_of(await self.outcome(*args, **kwargs))  # type: ignore[no-any-return]

    async def outcome(self, *args: P.args, **kwargs: P.kwargs) -> Outcome[T]:
        """What became of the call; raises only what the function raises."""
        return await run_once_async(self.calls, args, kwargs)  # type: ignore[no-any-return]


def run_once(
    calls: Calls, payloads: tuple[bytes, bytes], call: Callable[[], Any], watch: _watch.Watch, **begin: Any
) -> Any:
    """Claims, runs and records one call; its outcome."""
    try:
        begun = native_claim(calls.semel.home.get().begin, calls.native, *payloads, **begin)
    except StoreUnavailable as unavailable:
        return watch.ended("store_unavailable", unavailable)
    if isinstance(begun, _native.Ended):
        return watch.ended(begun.word, calls.heard(begun), begun)
    run = Run(begun, False, calls.terms.encode, calls.semel.url)
    token = current.set(run)
    try:
        with watch.running(begun):
            value = call()
        kind, body = calls.ending(value, run)
    except Already:
        ended = end(begun, "ok", None)
        return watch.ended(ended.word, calls.heard(ended), ended)
    except LeftOpen as error:
        _leave(begun, watch, error)
        raise
    except BaseException as error:
        watch.raised(end(begun, *calls.failing(error)), error)
        raise
    finally:
        current.reset(token)
    ended = end(begun, kind, body)
    return watch.ended(ended.word, calls.ran(value, ended, run), ended)


async def run_once_async(calls: Calls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same on an event loop."""
    payload, own = calls.payloads(args, kwargs)
    watch = _watch.Watch(calls)
    try:
        home = await calls.semel.home.get_async()
        begun = await on_loop(home.begin_async, calls.native, payload, own)
    except StoreUnavailable as unavailable:
        return watch.ended("store_unavailable", unavailable)
    if isinstance(begun, _native.Ended):
        return watch.ended(begun.word, calls.heard(begun), begun)
    run = Run(begun, True, calls.terms.encode, calls.semel.url)
    token = current.set(run)
    try:
        with watch.running(begun):
            value = await calls.function(*args, **kwargs)
        kind, body = calls.ending(value, run)
    except Already:
        ended = await _end_async(begun, "ok", None)
        return watch.ended(ended.word, calls.heard(ended), ended)
    except LeftOpen as error:
        _leave(begun, watch, error)
        raise
    except BaseException as error:
        watch.raised(await _end_async(begun, *calls.failing(error)), error)
        raise
    finally:
        current.reset(token)
    ended = await _end_async(begun, kind, body)
    return watch.ended(ended.word, calls.ran(value, ended, run), ended)


def _leave(begun: _native.Run, watch: _watch.Watch, error: LeftOpen) -> None:
    """Does not wait for the record: the open transaction holds it, and does not end before its caller goes on."""
    if begun.ended is None:
        begun.fail_without_waiting(str(error))
    watch.raised(None, error)


def end(begun: _native.Run, kind: str, body: Optional[bytes], after: Optional[float] = None) -> _native.Ended:
    """Records how a run ended, unless it has said so before. A signal's exception that comes when the record is made does
    not undo it."""
    try:
        if begun.ended is None:
            native(begun.end, kind, body, after)
    except Exception as late:
        if begun.ended is None:
            raise
        _watch.log.warning("%s was raised after the outcome of %s had been recorded, and is dropped", late, begun.key)
    ended = begun.ended
    assert ended is not None, "end() sets it or raises"
    return ended


async def _end_async(begun: _native.Run, kind: str, body: Optional[bytes]) -> _native.Ended:
    """The same on an event loop. A second cancellation does not stop the recording, only the wait for it."""
    return await on_loop(begun.end_async, kind, body)  # type: ignore[no-any-return]


def value_of(outcome: Any) -> Any:
    """The value of an outcome, or the exception that it is."""
    if isinstance(outcome, BaseException):
        if isinstance(outcome, Failed) and outcome.exception is not None:
            raise outcome.exception from outcome
        raise outcome
    return outcome.value


# === words ===

_PARKED = (
    "it may or may not have taken effect, or its attempts are used up; look at it with `semel records show`, then "
    "`semel records resolve` or `release`"
)
_NOT_COMPLETED = "whatever it did is not recorded as done, and it runs again when it is called again"
_NOT_KEPT = "the work succeeded, but its value was not kept (over 1 MiB, or not JSON): only the first caller has it"


def _again(kind: type[Again], what: str) -> Callable[[str, Optional[float]], Error]:
    return lambda route, retry_after: kind(f"{route}: {what}", 1.0 if retry_after is None else retry_after)


def _settled(kind: type[Error], what: str) -> Callable[[str, Optional[float]], Error]:
    return lambda route, retry_after: kind(f"{route}: {what}")


_OUTCOMES: dict[str, Callable[[str, Optional[float]], Error]] = {
    "busy": _again(Busy, "the same work is running; nothing was run, call again later"),
    "not_yet": _again(NotYet, "it failed before and is not due yet; nothing was run, call again later"),
    "full": _again(Full, "too much work is in hand; nothing was run, call again later"),
    "unread": _again(Unread, "it ran, and whether its transaction committed is not known yet; call again to hear it"),
    "parked": _settled(Parked, _PARKED),
    "mismatched": _settled(Mismatched, "its key is known with other arguments; nothing was run"),
    "stale": _settled(Stale, "this run was overtaken, and what it did does not count"),
}


def _one_of(name: str, value: str, **choices: bool) -> bool:
    if value not in choices:
        raise ConfigError(f"{name}={value!r}: say one of {', '.join(map(repr, choices))}")
    return choices[value]


def exceptions(name: str, kinds: Iterable[type[BaseException]]) -> Exceptions:
    listed: tuple[Any, ...] = (kinds,) if isinstance(kinds, type) else tuple(kinds)
    for kind in listed:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise ConfigError(f"{name}: {kind!r} is not an exception class")
    return listed


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _written(error: BaseException) -> bytes:
    """An exception as JSON: its class, its arguments where they are JSON, and what it says."""
    said = {"exception": _name(type(error)), "message": _message(error)}
    try:
        return encode({**said, "args": list(error.args)})
    except Exception:  # arguments without a JSON, or with an encoder that raises
        return encode(said)


def _message(error: BaseException) -> str:
    try:
        return str(error).encode("utf-8", "backslashreplace").decode()
    except Exception:  # an exception that cannot say what it is
        return ""


def _made_again(kind: type[BaseException], said: dict[str, Any]) -> Optional[BaseException]:
    try:
        return kind(*said.get("args", [said.get("message", "")]))
    except Exception:  # a constructor of its own: Failed names it all the same
        return None
