"""Letters: messages that were acknowledged without success, kept whole in the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from kombu.utils import json

from .._errors import Error
from .._once import Calls, Semel
from .._stored import pack, unpack
from .._wait import native
from .._watch import log

UNSETTLED = object()
"""What a message was told of is not decided yet: it must come again."""

NOT_KEPT = object()
"""The store did not take it: the message must come again."""

HEADER = "semel-letter"
"""Names the letter in the message that redrives it, where the message has no key or one that stands for other work."""

_BODY_TYPE = "application/vnd.semel.celery+json"


@dataclass(frozen=True)
class Letter:
    """A message that was given up."""

    id: str
    task: str
    task_id: str
    exchange: str
    queue: str
    """The routing key; without an exchange, the queue's name."""
    args: Optional[list[Any]]
    """``None`` when the message's arguments have no JSON: then ``text`` shows them."""
    kwargs: Optional[dict[str, Any]]
    text: Optional[str]
    reason: str
    why: str
    standing: str
    """How its work stands by its record: ``succeeded``, ``not run``, ``unknown``, or the record's state."""


def keep(calls: Calls, request: Any, reason: str, why: str, payloads: Any, body: bytes) -> Any:
    """Keeps a message. Gives its letter's id, ``None`` when there is nothing to keep, ``UNSETTLED`` or ``NOT_KEPT``."""
    delivery = pack(calls.route, f"/celery/{calls.route}", _headers(request), why, body)
    try:
        kept = native(calls.semel.home.get().keep_letter, calls.native, payloads, str(request.id), reason, delivery)
    except Error as error:
        log.error(
            "%s[%s] is given up (%s: %s), and the store did not keep its letter: %s", calls.route, request.id, reason, why,
            error,
        )  # fmt: skip
        return NOT_KEPT
    return UNSETTLED if kept == "unsettled" else kept or None


def letters(app: Any) -> list[Letter]:
    """The open letters of an app's store that Celery's messages left."""
    home = _semel(app).home.get()
    found: list[Letter] = []
    for letter_id, reason, standing, delivery in native(home.letters):
        try:
            head, body = unpack(delivery)
            if head["headers"].get("content-type") == _BODY_TYPE:
                found.append(_letter(letter_id, reason, standing, head, json.loads(body)))
        except Exception as error:  # one that cannot be read does not hide the others
            log.error("letter %s cannot be read, and is left as it is: %s", letter_id, error)
    return found


def redrive(app: Any, letter_id: str, *, run_again: bool = False) -> Any:
    """Publishes a letter's message again, under its own task id. Its record is made claimable first; the letter is closed
    once its work has succeeded. One whose record is gone is published only with ``run_again``: nobody knows any more
    whether it has run."""
    letter = _find(app, letter_id)
    if letter.args is None:
        raise Error(f"letter {letter_id} cannot be published: its arguments have no JSON ({letter.text}); publish what it "
                    f"meant yourself, then discard it")
    native(_semel(app).home.get().redrive_letter, letter_id, run_again)
    task = app.tasks[letter.task]
    options: dict[str, Any] = {"queue": letter.queue} if letter.queue else {}
    if letter.exchange:
        options = {"exchange": letter.exchange, "routing_key": letter.queue}
    if letter.reason in ("mismatched", "invalid"):
        options["headers"] = {HEADER: letter.id}
    return task.apply_async(letter.args, letter.kwargs, task_id=letter.task_id, **options)


def discard(app: Any, letter_id: str) -> None:
    """Closes a letter without running it."""
    _find(app, letter_id)
    native(_semel(app).home.get().close_letter, letter_id)


def _find(app: Any, letter_id: str) -> Letter:
    for letter in letters(app):
        if letter.id == letter_id:
            return letter
    raise Error(f"there is no open letter {letter_id} of a Celery task here; semel.celery.letters(app) lists them")


def _semel(app: Any) -> Semel:
    from ._setup import semel_of

    return semel_of(app)


def _letter(letter_id: str, reason: str, standing: str, head: dict[str, Any], body: dict[str, Any]) -> Letter:
    headers = head["headers"]
    return Letter(
        letter_id, head["route"], headers.get("celery-task-id", ""), headers.get("celery-exchange", ""),
        headers.get("celery-queue", ""), body.get("args"), body.get("kwargs"), body.get("text"), reason, head["why"], standing,
    )  # fmt: skip


def _headers(request: Any) -> dict[str, str]:
    info: dict[str, Any] = request.delivery_info or {}
    named = {
        "content-type": _BODY_TYPE,
        "celery-task-id": str(request.id),
        "celery-exchange": str(info.get("exchange") or ""),
        "celery-queue": str(info.get("routing_key") or ""),
        "celery-retries": str(request.retries),
    }
    return {name: value for name, value in named.items() if value}


def body_of(args: Any, kwargs: Any) -> bytes:
    """The arguments, by Celery's own JSON, which keeps decimals, dates and UUIDs apart from their texts. What it does not
    know (a set, pickled objects) is kept as text, for people: such a letter cannot be published again."""
    message = {"args": list(args or ()), "kwargs": dict(kwargs or {})}
    try:
        return str(json.dumps(message)).encode()
    except Exception:  # whatever an argument's own encoder raises
        return str(json.dumps({"text": repr(message).encode("ascii", "backslashreplace").decode()})).encode()


def arguments_of(body: bytes, request: Any) -> dict[str, Any]:
    """The arguments as they came; as they are now where they have no JSON."""
    kept: dict[str, Any] = json.loads(body)
    if "text" in kept:
        return {"args": request.args, "kwargs": request.kwargs}
    return {"args": kept["args"], "kwargs": kept["kwargs"]}
