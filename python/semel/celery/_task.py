"""The task class: ``__call__`` stands outside autoretry and sees the request, so one place decides what a message comes
to."""

from __future__ import annotations

import inspect
import random
import sys
from typing import Any, Callable, Optional

import celery
from celery.exceptions import Ignore, Reject, Retry, SoftTimeLimitExceeded

from .._bind import Binder
from .._errors import (
    Again,
    ConfigError,
    Failed,
    KeyRefused,
    Mismatched,
    NotCompleted,
    Parked,
    Stale,
    StoreUnavailable,
)
from .._once import Calls, Terms, end, exceptions, replaced, run_once, value_of
from .._outcomes import Ran
from .._run import current
from .._watch import Watch, log
from . import _letters  # pyright: ignore[reportPrivateUsage]

_WAIT_SECONDS = 1.0
"""How long a duplicate waits for the running one before its message is published again: it holds a slot of the pool."""

_TIMEOUT_SECONDS = 3600.0
"""How long a task may run that has no time limit."""

_COUNTDOWN_MAX_SECONDS = 30.0

_AWAY = "semel-store-away"
"""How often a message met a store that was away; a header, because retries are the task's own."""

_AWAY_MAX_SECONDS = 60.0

_NOT_FAILURES = (Retry, Ignore, Reject)
"""What a task raises to steer Celery: these say nothing about its effect."""


class Task(celery.Task):  # type: ignore[misc]
    """A task that takes effect once if it says ``once=``: a parameter's name, a JSON pointer, several of them, ``True``
    for all arguments, or a dictionary with the terms of :meth:`semel.Semel.once`."""

    abstract = True
    once: Any = None

    @classmethod
    def on_bound(cls, app: Any) -> None:
        """Finds wrong terms when the task is declared, not when it is first delivered."""
        if cls.once is not None:
            if inspect.iscoroutinefunction(inspect.unwrap(cls.run)):
                raise ConfigError(f"{cls.name} is async, and Celery does not await tasks: nothing of it would run")
            Binder(cls().run, terms_of(cls).key, cls.name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.once is None:
            return super().__call__(*args, **kwargs) if self.request.called_directly else self.run(*args, **kwargs)
        # A task that calls itself is called directly, under its own message's request.
        if not self.request.called_directly and _Delivery.of(self.request) is None:
            return _Delivery(self, args, kwargs).deliver()
        self.push_request(args=args, kwargs=kwargs)
        try:
            return _Delivery(self, args, kwargs).deliver()
        finally:
            self.pop_request()

    def replace(self, sig: Any) -> Any:
        """Refused: the task's result would be another task's, which its record does not know."""
        if self.once is not None:
            raise ConfigError(f"{self.name} says once, so it cannot replace itself: call or publish the other task instead")
        return super().replace(sig)

    def calls(self) -> Calls:
        """How its messages are named."""
        made = replaced.get() or self.__dict__.get("_semel_calls")
        if made is None:
            from ._setup import semel_of

            made = Calls(semel_of(self.app), self.run, terms_of(type(self)), route=self.name)
            self.__dict__["_semel_calls"] = made
        return made

    def retry(self, *args: Any, exc: Optional[BaseException] = None, throw: bool = True, **options: Any) -> Any:
        """Celery's retry. The run is recorded as waiting first: the retry's message may arrive before this run ends."""
        delivery = _Delivery.of(self.request)
        if delivery is None:
            return super().retry(*args, exc=exc, throw=throw, **options)
        args, options = delivery.retry_arguments(args, options)
        if not throw:
            # The function goes on; it is published when that has ended.
            delivery.retry_for = exc or sys.exc_info()[1]
            delivery.retry_later = lambda: super(Task, self).retry(*args, exc=exc, throw=False, **options)
            return Retry(exc=exc)
        # As Celery does it: without an exception given, it is the one being handled.
        delivery.record_retry(exc or sys.exc_info()[1])
        return super().retry(*args, exc=exc, throw=True, **options)


class _Delivery:
    """One message, from its arrival to what Celery is told."""

    def __init__(self, task: Task, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.task = task
        self.request = task.request
        self.calls = task.calls()
        self.args, self.kwargs = args, kwargs
        # As they came: the task may change what it was given.
        self._body = _letters.body_of(args, kwargs)
        self._payloads: Optional[tuple[bytes, bytes]] = None
        self._returned = False
        self.retry_later: Any = None
        self.retry_for: Optional[BaseException] = None
        self._value_beside_retry: Optional[Ran[Any]] = None
        self._run: Any = None

    @staticmethod
    def of(request: Any) -> Optional[_Delivery]:
        """The delivery that is running under this request, if its task says ``once``."""
        found = request.get("semel_delivery")
        return found if isinstance(found, _Delivery) and found._run is not None else None

    def deliver(self) -> Any:
        self.request.semel_delivery = self
        try:
            outcome = self._outcome()
        except BaseException as error:
            raised = error
            return self._despite_the_limit(lambda: self._raised(raised), raised)
        finally:
            self.request.semel_delivery = None
        return self._despite_the_limit(lambda: self._answer(outcome))

    def _despite_the_limit(self, tell: Callable[[], Any], own: Optional[BaseException] = None) -> Any:
        """What became of the message is decided, so a soft limit is too late. It comes once, and to keep a letter or to
        publish a second time does no harm. ``own`` is what the task raised itself."""
        try:
            return tell()
        except SoftTimeLimitExceeded as late:
            if late is own:
                raise
            log.warning("%s[%s] was over when its soft limit came, which is dropped", self.calls.route, self.request.id)
            return tell()

    def _raised(self, error: BaseException) -> Any:
        if isinstance(error, _NOT_FAILURES):
            if isinstance(error, Reject) and not error.requeue:
                self._letter("failed", f"rejected: {error.reason}")
            raise error
        if self._run is None:
            return self._not_begun(error)
        ended = self._run.ended
        if self._returned and isinstance(error, SoftTimeLimitExceeded) and ended and ended.word in ("ran", "unrecorded"):
            return self._answer(self.calls.heard(ended))  # the limit came when the value was recorded
        raise self._failed(error) from None

    def _not_begun(self, error: BaseException) -> Any:
        """Nothing ran: a message that can have no key is kept, any other comes again."""
        if isinstance(error, KeyRefused):
            self._letter("invalid", str(error))
            raise error
        if isinstance(error, TypeError) or not isinstance(error, Exception):
            raise error  # a call that Python itself refuses; the end of the process
        log.error("%s[%s] was not begun: %s", self.calls.route, self.request.id, error)
        return self._again(StoreUnavailable(f"{self.calls.route}: nothing was run: {error!r}"))

    def retry_arguments(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The arguments of a retry: those that came, or others that are the same work."""
        given = dict(zip(("args", "kwargs"), args))
        given.update({name: options.pop(name) for name in ("args", "kwargs") if name in options})
        if given.get("args") is None and given.get("kwargs") is None:
            return args[2:], {**options, **_letters.arguments_of(self._body, self.request)}
        new = self.calls.payloads(tuple(given.get("args") or ()), dict(given.get("kwargs") or {}))
        if self._payloads is not None and new[1] != self._payloads[1]:
            raise Mismatched(f"{self.calls.route}: a retry with other arguments is other work, and would meet this one's "
                             f"record: publish it as a task of its own")
        return args[2:], {**options, **given}

    def _outcome(self) -> Any:
        letter = self._headers().get(_letters.HEADER)
        # A redriven letter without a key of its own runs under the letter's.
        payloads = self.calls.payloads(self.args, self.kwargs) if letter is None else (b"{}", str(letter).encode())
        self._payloads = None if letter is not None else payloads
        watch = Watch(self.calls, system="celery", id=self.request.id, queue=self._queue())
        return run_once(
            self.calls, payloads, self._call, watch, timeout=self._timeout(), wait=self._wait(), letter=letter,
            id=self.request.id,
        )

    def _call(self) -> Any:
        self._run = current.get().core
        try:
            value = self.task.run(*self.args, **self.kwargs)
        except _NOT_FAILURES as steering:
            # Retry() has recorded the run already; the others leave the work to whoever delivers next.
            self.record_retry(steering)
            if self.retry_later is not None:
                self.retry_later()
            raise
        self._returned = True
        if self.retry_later is not None:
            self.record_retry(self.retry_for)
            self.retry_later()
            self._value_beside_retry = Ran(value)
        return value

    def record_retry(self, error: Optional[BaseException]) -> None:
        """Records that the run failed and may be tried again, unless it has said how it ended."""
        if self._run.ended is not None:
            return
        if error is None or isinstance(error, _NOT_FAILURES):
            # Ignore and Reject say nothing of what was done before them.
            doubt = self.calls.terms.park and isinstance(error, (Ignore, Reject))
            end(self._run, "in_doubt" if doubt else "retryable", b"{}")
        else:
            end(self._run, *self.calls.failing(error))

    def _failed(self, error: BaseException) -> BaseException:
        """What a task's own exception comes to, once nobody retries it."""
        ended = self._run.ended if self._run is not None else None
        if ended is None:
            return error
        is_parked = ended.word == "failed" and ended.is_parked
        if not (ended.word == "stale" or (ended.word in ("ran", "unrecorded") and not ended.is_final)):
            kept = self._letter("parked" if is_parked else "failed", f"{type(error).__name__}: {error}")
            if kept is _letters.NOT_KEPT:
                # The record stands; the next delivery hears it, and keeps the letter.
                self._again(StoreUnavailable(f"{self.calls.route}: its letter could not be kept"))
        if is_parked:
            parked = Parked(f"{self.calls.route}: it may or may not have taken effect ({type(error).__name__}: {error})")
            parked.__cause__ = error
            return parked
        return error

    def _answer(self, outcome: Any) -> Any:
        """What Celery is told."""
        if self._value_beside_retry is not None:
            return self._value_beside_retry.value
        if isinstance(outcome, (Again, Stale)):
            return self._again(outcome)
        if isinstance(outcome, NotCompleted):
            self._letter("failed", str(outcome))
        elif isinstance(outcome, Mismatched):
            # While the other work is not settled, neither is what becomes of this message.
            if self._letter("mismatched", str(outcome)) is _letters.UNSETTLED:
                return self._again(outcome)
        elif isinstance(outcome, (Parked, Failed)):
            # Whoever came first may have died before it kept the letter; a second one is the same letter.
            kept = self._letter("parked" if isinstance(outcome, Parked) else "failed", str(outcome))
            if kept is _letters.NOT_KEPT:
                return self._again(StoreUnavailable(str(outcome)))
        return value_of(outcome)

    def _again(self, outcome: Any) -> Any:
        """Publishes the message again, under its own id, with its retries untouched."""
        if self.request.called_directly or self.request.is_eager:
            raise outcome
        countdown = self._countdown(outcome)
        options: dict[str, Any] = {"countdown": countdown, "retries": self.request.retries}
        if isinstance(outcome, StoreUnavailable):
            options["headers"] = {**self._headers(), _AWAY: self._times_away() + 1}
        arguments = _letters.arguments_of(self._body, self.request)
        signature = self.task.signature_from_request(self.request, arguments["args"], arguments["kwargs"], **options)
        try:
            signature.apply_async()
        except SoftTimeLimitExceeded:
            raise  # it is published all the same
        except Exception as error:
            log.error("%s[%s] could not be published again: %s", self.calls.route, self.request.id, error)
            if self.task.acks_late:
                raise Reject(error, requeue=True) from error
            raise outcome from error
        raise Retry(exc=outcome, when=countdown, sig=signature)

    def _countdown(self, outcome: Any) -> float:
        after, longest = getattr(outcome, "retry_after", _WAIT_SECONDS), _COUNTDOWN_MAX_SECONDS
        if isinstance(outcome, StoreUnavailable):
            after, longest = 2.0 ** min(self._times_away(), 6), _AWAY_MAX_SECONDS
        options: dict[str, Any] = self.task.app.conf.broker_transport_options or {}
        limit = min(longest, float(options.get("visibility_timeout", 3600)) / 2)
        spread = random.uniform(0.8, 1.2)  # copies that waited together must not come back together
        return max(0.05, min(limit, after * spread))

    def _times_away(self) -> int:
        """How often this message met a store that was away, one time after the other."""
        return int(self._headers().get(_AWAY, 0))

    def _headers(self) -> dict[str, Any]:
        return self.request.headers or {}

    def _timeout(self) -> float:
        if self._says("timeout"):
            return self.calls.terms.timeout
        hard = (self.request.timelimit or (None, None))[0] or self.task.time_limit or self.task.app.conf.task_time_limit
        return float(hard) + self.calls.terms.lease if hard else _TIMEOUT_SECONDS

    def _wait(self) -> float:
        return self.calls.terms.wait if self._says("wait") else _WAIT_SECONDS

    def _says(self, term: str) -> bool:
        once: Any = self.task.once
        return isinstance(once, dict) and term in once

    def _queue(self) -> Any:
        info: dict[str, Any] = self.request.delivery_info or {}
        return info.get("routing_key")

    def _letter(self, reason: str, why: str) -> Any:
        if self.request.called_directly or self.request.is_eager:
            return None
        return _letters.keep(self.calls, self.request, reason, why, self._payloads, self._body)


def terms_of(task: Any) -> Terms:
    """What a task class says of itself, as terms."""
    once: Any = task.once
    said: dict[str, Any] = {**once} if isinstance(once, dict) else {"key": None if once is True else once}
    if once is False or "name" in said:
        raise ConfigError(f"{task.name}: once={once!r}: leave `once` out, or name what makes two messages the same work")
    said["in_doubt_on"] = (*exceptions("in_doubt_on", said.get("in_doubt_on", ())), SoftTimeLimitExceeded)
    terms = Terms(**said)
    terms.source = "celery"
    return terms
