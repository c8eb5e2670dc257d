"""Completion inside the handler's own Firestore transaction or batch (``pip install 'semel[firestore]'``).

    @firestore.transactional
    def take(transaction, item, key, fence):
        stock = item.get(transaction=transaction)                                   # every read first,
        semel.firestore.complete(transaction, key, fence, 200, '{"taken": 1}')      # then this,
        transaction.update(item, {"n": stock.get("n") - 1})                         # then every write

``key`` and ``fence`` are the headers ``Semel-Key`` and ``Semel-Fence`` of a gate whose route says
``completes = "handler"`` and whose store is this database. Record and effect are one Commit: both or neither.

A *transaction* locks what it reads, and a process that is killed inside one leaves those locks for 60 seconds. A *batch*
(:func:`run_in_batch`) leaves none, and guards only what it writes: prefer it for documents that many requests want.
"""

from __future__ import annotations

import inspect
import random
import time
from typing import Any, Awaitable, Callable, TypeVar, Union, overload
from urllib.parse import parse_qsl, unquote, urlsplit

from google.api_core import exceptions
from google.cloud import firestore as google
from google.cloud.firestore_v1.base_transaction import BaseTransaction

from ._duration import Duration, seconds
from ._errors import ConfigError, Stale
from ._firestore_records import (
    Already,
    Headers,
    checked_fence,
    checked_key,
    completed,
    microseconds,
    once_digest,
    outcome,
    remembered,
)

__all__ = ["Already", "Stale", "complete", "once", "run_in_batch"]

T = TypeVar("T")
Writer = Union[google.Transaction, google.WriteBatch]
AsyncWriter = Union[google.AsyncTransaction, google.AsyncWriteBatch]

_JSON: Headers = {"content-type": "application/json"}
_PREFIX = "semel"
_DATABASE = "(default)"

_REFUSED = (exceptions.Aborted, exceptions.AlreadyExists, exceptions.FailedPrecondition)
"""A batch was not written because somebody else wrote first. Or it was written, its answer was lost, and the client's
own repetition was refused: then reading again finds that out."""


@overload
def complete(writer: Writer, key: str, fence: Union[int, str], status: int = ..., body: Union[str, bytes] = ..., *,
             headers: Headers = ..., prefix: str = ...) -> None: ...  # fmt: skip
@overload
def complete(writer: AsyncWriter, key: str, fence: Union[int, str], status: int = ..., body: Union[str, bytes] = ..., *,
             headers: Headers = ..., prefix: str = ...) -> Awaitable[None]: ...  # fmt: skip


def complete(writer: Any, key: str, fence: Union[int, str], status: int = 200, body: Union[str, bytes] = b"", *,
             headers: Headers = _JSON, prefix: str = _PREFIX) -> Any:  # fmt: skip
    """Records the success of a run in the transaction or batch that makes its writes. Status, body and headers are what
    every duplicate hears; a body that does not fit into a document is not kept. Call it after the last read and before
    the first write of a transaction: it reads. Await it if the writer is asynchronous.

    Raises :class:`semel.Stale` when the run was overtaken and :class:`Already` when it is completed: let them leave the
    transaction, so that nothing is written. ``prefix`` is that of the store's URL."""
    fence = checked_fence(fence)
    result = outcome(status, headers, body)
    record = _document(writer, prefix, checked_key(key))

    def write(found: Any) -> None:
        fields = completed(key, found.to_dict(), fence, result, microseconds(found.read_time))
        _update(writer, record, found, fields)

    return _read(writer, record, write)


def complete_in_store(writer: Any, store: str, key: str, fence: int, status: int, body: bytes) -> Any:
    """The same for a run of the store with this URL, which must be in the writer's own database."""
    place = urlsplit(store)
    options = dict(parse_qsl(place.query))
    wanted = (unquote(place.netloc), unquote(place.path.strip("/")) or _DATABASE)
    client = _client(writer)
    given = (client.project, getattr(client, "_database", _DATABASE))
    if given != wanted:
        raise ConfigError(f"the store is in database {wanted[1]} of project {wanted[0]}, and this writes to database "
                          f"{given[1]} of project {given[0]}: they would not commit together; use one database for both")
    record: Callable[..., Any] = complete  # awaited or not, as its writer is
    return record(writer, key, fence, status, body, prefix=options.get("prefix", _PREFIX))


@overload
def once(writer: Writer, name: str, retention: Duration = ..., *, prefix: str = ...) -> bool: ...
@overload
def once(writer: AsyncWriter, name: str, retention: Duration = ..., *, prefix: str = ...) -> Awaitable[bool]: ...


def once(writer: Any, name: str, retention: Duration = "7d", *, prefix: str = _PREFIX) -> Any:
    """True once per name, for code without a gate: make your writes in the same transaction or batch, and none when it
    is false. False says that they were made: by another call, or by this very one if the answer to its Commit was lost.
    The name is remembered for ``retention``. It reads, so call it before the first write. Await it if the writer is
    asynchronous."""
    digest = once_digest(name)
    keep = round(seconds("retention", retention) * 1_000_000)
    if keep <= 0:
        raise ConfigError("once needs a retention above zero")
    record = _document(writer, prefix, "v1_" + digest.hex())

    def write(found: Any) -> bool:
        fields = remembered(digest, found.to_dict(), keep, microseconds(found.read_time))
        if fields is None:
            return False
        if found.exists:
            _update(writer, record, found, fields)
        else:
            writer.create(record, fields)
        return True

    return _read(writer, record, write)


def run_in_batch(client: google.Client, function: Callable[[google.WriteBatch], T], *, within: float = 30.0) -> T:
    """Calls ``function`` with a new batch, commits what it wrote, and gives back what it returned. When somebody else
    has written first, it is called again, from its reads on, for at most so many seconds.

    Only what a batch writes is guarded, so give every write a condition: ``batch.create``, or ``batch.update`` with
    ``option=client.write_option(last_update_time=snapshot.update_time)``. The function may run several times: let it do
    nothing but read and fill the batch."""
    if isinstance(client, google.AsyncClient):
        raise ConfigError("run_in_batch is for the synchronous client: fill a batch of an AsyncClient and await its commit")
    deadline = time.monotonic() + within
    pause = 0.01
    while True:
        batch: Any = client.batch()
        value = function(batch)
        if not len(batch):
            return value
        try:
            batch.commit()
            return value
        except _REFUSED:
            if time.monotonic() + pause > deadline:
                raise
        time.sleep(random.uniform(0, pause))
        pause = min(2 * pause, 0.5)


def _client(writer: Any) -> Any:
    if not isinstance(writer, (google.WriteBatch, google.AsyncWriteBatch, BaseTransaction)):
        raise ConfigError(f"a {type(writer).__qualname__} does not write to Firestore: pass your transaction or batch")
    return getattr(writer, "_client")


def _document(writer: Any, prefix: str, key: str) -> Any:
    return _client(writer).collection(f"{prefix}_records").document(key)


def _read(writer: Any, record: Any, then: Callable[[Any], Any]) -> Any:
    """Reads the record, locked if that is in a transaction; an awaitable when the client is asynchronous."""
    found = record.get(transaction=writer if isinstance(writer, BaseTransaction) else None)
    return _awaited(found, then) if inspect.isawaitable(found) else then(found)


async def _awaited(found: Awaitable[Any], then: Callable[[Any], Any]) -> Any:
    return then(await found)


def _update(writer: Any, record: Any, found: Any, fields: dict[str, Any]) -> None:
    """Only if nobody has written it since it was read."""
    condition = _client(writer).write_option(last_update_time=found.update_time)
    writer.update(record, fields, option=condition)
