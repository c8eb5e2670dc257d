"""Completion inside the caller's own transaction, whatever library it uses: of PostgreSQL, or of Firestore, where it may be
a batch. No driver is imported."""

from __future__ import annotations

import inspect
from typing import Any, Optional

from ._errors import ConfigError, Error, Stale
from ._payload import encode
from ._run import Run, run

_COMPLETE = "SELECT semel.complete({0}, {1}, {2}, {3})"
_ONCE = "SELECT semel.once({0}, {1}::interval)"
_ONCE_DEFAULT = "SELECT semel.once({0})"


def complete(tx: Any, value: Any = None, *, status: int = 200) -> Any:
    """Records the run's success inside ``tx``, last before it commits: the record and its writes commit together, or
    neither does. In Firestore ``tx`` is a transaction or a batch, and the call belongs after the last read and before the
    first write. Gives ``value`` back; an awaitable of it when ``tx`` is asynchronous. A run that was overtaken gets
    :class:`semel.Stale`; let it leave the transaction's block, so that it rolls back."""
    going_on = run()
    if going_on.store.startswith("firestore:"):
        return _complete_in_firestore(tx, value, status, going_on)
    if _is_autocommit(tx):
        raise ConfigError("semel.complete needs a transaction, and this connection commits each statement by itself: the "
                          "record and your writes would not commit together; begin a transaction first")
    body = encode(value, going_on.hook).decode()
    going_on.completed_in = tx
    answer = _select(tx, _COMPLETE, (going_on.key, going_on.fence, status, body))
    if inspect.isawaitable(answer):
        return _then(answer, value)
    return value


def _complete_in_firestore(tx: Any, value: Any, status: int, going_on: Run) -> Any:
    from . import firestore  # it imports Google's client, which only such stores need

    body = encode(value, going_on.hook)
    going_on.completed_in = tx
    answer = firestore.complete_in_store(tx, going_on.store, going_on.key, going_on.fence, status, body)
    return _then(answer, value) if inspect.isawaitable(answer) else value


def once_in(tx: Any, name: str, retention: Optional[str] = None) -> Any:
    """True once per name, inside ``tx``; roll back when it is false. Remembered for 7 days, or for ``retention`` (an
    interval of PostgreSQL: ``'90 days'``). In Firestore that is :func:`semel.firestore.once`."""
    if is_of_firestore(tx):
        raise ConfigError("semel.once_in is for PostgreSQL: in Firestore, call semel.firestore.once")
    if retention is None:
        return _select(tx, _ONCE_DEFAULT, (name,))
    return _select(tx, _ONCE, (name, retention))


def _is_autocommit(tx: Any) -> bool:
    """Whether no transaction is open, as far as the library tells."""
    of = type(tx).__module__.split(".")[0]
    if of == "asyncpg":
        return not tx.is_in_transaction()
    if of == "django":
        return bool(tx.get_autocommit())
    if of in ("psycopg", "psycopg2"):
        connection = getattr(tx, "connection", tx)  # of a cursor
        is_idle = connection.info.transaction_status == 0
        return bool(connection.autocommit) and is_idle
    return False


def is_of_firestore(tx: Any) -> bool:
    """Whether it is a transaction or batch of Google's client."""
    return any(kind.__module__.startswith("google.cloud.firestore") for kind in type(tx).__mro__)


def is_left_open(tx: Any) -> bool:
    """Whether a transaction is surely still open. A connection that went back to a pool may be somebody else's by now, so
    nothing is said of those."""
    of = type(tx).__module__.split(".")[0]
    try:
        if is_of_firestore(tx):
            return bool(getattr(tx, "in_progress", False))  # a batch holds no lock
        if of == "asyncpg":
            return bool(tx.is_in_transaction())
        if of == "sqlalchemy":
            return bool(tx.in_transaction())
        if of == "django":
            return bool(getattr(tx, "db", tx).in_atomic_block)
        if of == "psycopg":
            connection = getattr(tx, "connection", tx)  # of a cursor
            return getattr(connection, "_pool", None) is None and connection.info.transaction_status in (1, 2)
    except Exception:  # a connection that was closed or given back
        return False
    return False


async def _then(answer: Any, value: Any) -> Any:
    await answer
    return value


def _select(tx: Any, sql: str, values: tuple[Any, ...]) -> Any:
    """The one value of a query; an awaitable of it when the connection is asynchronous."""
    try:
        answer = _ask(tx, sql, values)
    except Exception as error:
        raise _told(error) from error
    return _awaited(answer) if inspect.isawaitable(answer) else answer


async def _awaited(answer: Any) -> Any:
    try:
        found = await answer
        if hasattr(found, "fetchone"):  # psycopg's asynchronous cursor
            row = found.fetchone()
            row = await row if inspect.isawaitable(row) else row
            return row[0]
        return found.scalar() if hasattr(found, "scalar") else found
    except Exception as error:
        raise _told(error) from error


def _ask(tx: Any, sql: str, values: tuple[Any, ...]) -> Any:
    of = type(tx).__module__.split(".")[0]
    if of == "asyncpg":
        return tx.fetchval(sql.format("$1", "$2", "$3", "$4"), *values)
    if of == "sqlalchemy":
        return _ask_sqlalchemy(tx, sql, values)
    written = sql.format(*["%s"] * 4)
    if hasattr(tx, "execute"):  # psycopg's connections and cursors, DB-API cursors
        done = tx.execute(written, values)
        if inspect.isawaitable(done):
            return done
        return (done if hasattr(done, "fetchone") else tx).fetchone()[0]
    if hasattr(tx, "cursor"):  # Django, psycopg2, other DB-API connections
        with tx.cursor() as cursor:
            cursor.execute(written, values)
            return cursor.fetchone()[0]
    raise ConfigError(
        f"semel cannot run SQL on a {type(tx).__qualname__}: pass the connection, session or cursor of your transaction "
        f"(psycopg, SQLAlchemy, Django, asyncpg)"
    )


def _ask_sqlalchemy(tx: Any, sql: str, values: tuple[Any, ...]) -> Any:
    from sqlalchemy import text  # whoever has a session has this

    named = {f"v{number}": value for number, value in enumerate(values)}
    # A cast written with two colons would be read as a parameter.
    written = sql.replace("{1}::interval", "CAST({1} AS interval)").format(*(f":v{number}" for number in range(4)))
    result = tx.execute(text(written), named)
    return result if inspect.isawaitable(result) else result.scalar()


def _told(error: BaseException) -> BaseException:
    """What the database refused, by its SQLSTATE, wherever the library keeps that."""
    seen: Optional[BaseException] = error
    for _ in range(4):
        state = getattr(seen, "sqlstate", None) or getattr(seen, "pgcode", None)
        if state == "SM001":
            return Stale(f"this run was overtaken, and its transaction must roll back: {seen}")
        if state in ("SM002", "SM003"):
            return Error(f"the run was not completed: {seen}")
        seen = getattr(seen, "orig", None) or getattr(seen, "__cause__", None)
    return error
