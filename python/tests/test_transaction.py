"""Completion inside the caller's own transaction, with each library that people use."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Callable

import psycopg
import pytest

import semel

URL_OF_SQLALCHEMY = "postgresql+psycopg://"


@pytest.fixture
def stock(database: str) -> str:
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE stock (item text PRIMARY KEY, n int); INSERT INTO stock VALUES ('lamp', 10)")
    return database


def left(database: str) -> Any:
    with psycopg.connect(database) as connection:
        row = connection.execute("SELECT n FROM stock").fetchone()
        assert row is not None
        return row[0]


TAKE = "UPDATE stock SET n = n - 1 WHERE item = 'lamp'"


def with_psycopg(url: str) -> Callable[[], Any]:
    def take() -> Any:
        with psycopg.connect(url) as tx:
            tx.execute(TAKE)
            return semel.complete(tx, {"ok": True})

    return take


def with_psycopg_cursor(url: str) -> Callable[[], Any]:
    def take() -> Any:
        with psycopg.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute(TAKE)
            return semel.complete(cursor, {"ok": True})

    return take


def with_psycopg2(url: str) -> Callable[[], Any]:
    import psycopg2

    def take() -> Any:
        connection = psycopg2.connect(url)
        try:
            with connection:
                connection.cursor().execute(TAKE)
                return semel.complete(connection, {"ok": True})
        finally:
            connection.close()

    return take


def with_sqlalchemy(url: str) -> Callable[[], Any]:
    import sqlalchemy
    from sqlalchemy.orm import sessionmaker

    engine = sqlalchemy.create_engine(url.replace("postgres://", URL_OF_SQLALCHEMY), poolclass=sqlalchemy.NullPool)
    session = sessionmaker(engine)

    def take() -> Any:
        with session.begin() as tx:
            tx.execute(sqlalchemy.text(TAKE))
            return semel.complete(tx, {"ok": True})

    return take


def with_sqlalchemy_connection(url: str) -> Callable[[], Any]:
    import sqlalchemy

    engine = sqlalchemy.create_engine(url.replace("postgres://", URL_OF_SQLALCHEMY), poolclass=sqlalchemy.NullPool)

    def take() -> Any:
        with engine.begin() as tx:
            tx.execute(sqlalchemy.text(TAKE))
            return semel.complete(tx, {"ok": True})

    return take


def with_django(url: str) -> Callable[[], Any]:
    from urllib.parse import urlsplit

    import django
    from django.conf import settings

    parts = urlsplit(url)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": parts.hostname,
        "PORT": parts.port,
        "USER": parts.username,
        "NAME": parts.path[1:],
    }
    if not settings.configured:
        settings.configure(DATABASES={"default": database})
        django.setup()
    from django.db import connections, transaction

    connections.databases["default"].update(database)

    def take() -> Any:
        with transaction.atomic():
            connection = connections["default"]
            with connection.cursor() as cursor:
                cursor.execute(TAKE)
            return semel.complete(connection, {"ok": True})

    return take


SYNCHRONOUS = [
    with_psycopg,
    with_psycopg_cursor,
    with_psycopg2,
    with_sqlalchemy,
    with_sqlalchemy_connection,
    with_django,
]


@pytest.mark.parametrize("library", SYNCHRONOUS, ids=lambda it: str(it.__name__))
def test_record_and_effect_commit_together(stock: str, library: Callable[[str], Callable[[], Any]]) -> None:
    shop = semel.Semel(stock, namespace="shop")
    take_one, fail = library(stock), [True]

    @shop.once(key="order_id", completes="handler")
    def take(order_id: str) -> Any:
        value = take_one()
        if fail:
            raise RuntimeError("after the commit")  # the record says that it happened
        return value

    # Its transaction committed, so whatever the function says afterwards, it has succeeded.
    with pytest.raises(RuntimeError):
        take("A-1")
    assert take.outcome("A-1") == semel.Replayed({"ok": True})
    fail.clear()
    assert take.outcome("A-2") == semel.Ran({"ok": True})
    assert take("A-2") == {"ok": True}
    assert left(stock) == 8


@pytest.mark.parametrize("library", SYNCHRONOUS, ids=lambda it: str(it.__name__))
def test_a_run_that_was_overtaken_rolls_back(stock: str, library: Callable[[str], Callable[[], Any]]) -> None:
    shop = semel.Semel(stock, namespace="shop")
    take_one = library(stock)

    @shop.once(key="order_id", completes="handler")
    def take(order_id: str) -> Any:
        with psycopg.connect(stock) as operator:
            operator.execute("UPDATE semel.rec SET fence = fence + 1")
        return take_one()

    with pytest.raises(semel.Stale, match="overtaken"):
        take("A-1")
    assert left(stock) == 10


def test_a_function_that_does_not_complete_has_not_succeeded(stock: str) -> None:
    shop = semel.Semel(stock, namespace="shop")

    @shop.once(key="order_id", completes="handler")
    def take(order_id: str) -> str:
        return "done, it says"

    assert isinstance(take.outcome("A-1"), semel.NotCompleted)
    with pytest.raises(semel.ConfigError, match="needs a postgres:// or firestore:// store"):
        semel.Semel("memory:").once(completes="handler")(take_nothing)


def take_nothing() -> None: ...


def test_asyncpg_and_async_sessions_are_awaited(stock: str) -> None:
    import asyncpg
    import sqlalchemy
    from sqlalchemy.ext.asyncio import create_async_engine

    shop = semel.Semel(stock, namespace="shop")
    engine = create_async_engine(stock.replace("postgres://", "postgresql+asyncpg://"), poolclass=sqlalchemy.NullPool)

    @shop.once(key="order_id", completes="handler")
    async def take(order_id: str) -> Any:
        connection = await asyncpg.connect(stock)
        async with connection.transaction():
            await connection.execute(TAKE)
            value = await semel.complete(connection, {"with": "asyncpg"})
        await connection.close()
        return value

    @shop.once(key="order_id", completes="handler")
    async def take_in_session(order_id: str) -> Any:
        async with engine.begin() as tx:
            await tx.execute(sqlalchemy.text(TAKE))
            return await semel.complete(tx, {"with": "sqlalchemy"})

    @shop.once(key="order_id", completes="handler")
    async def take_with_psycopg(order_id: str) -> Any:
        async with await psycopg.AsyncConnection.connect(stock) as tx:
            await tx.execute(TAKE)
            return await semel.complete(tx, {"with": "psycopg"})

    async def main() -> list[Any]:
        return [await function("A-1") for function in (take, take_in_session, take_with_psycopg) for _ in (1, 2)]

    values = [value["with"] for value in asyncio.run(main())]
    assert values == ["asyncpg", "asyncpg", "sqlalchemy", "sqlalchemy", "psycopg", "psycopg"]
    assert left(stock) == 7


def test_once_in_is_true_once_per_name(stock: str) -> None:
    semel.Semel(stock, namespace="shop").once(lambda: 1)()  # makes the schema
    import sqlalchemy

    engine = sqlalchemy.create_engine(stock.replace("postgres://", URL_OF_SQLALCHEMY), poolclass=sqlalchemy.NullPool)
    with psycopg.connect(stock) as tx:
        assert semel.once_in(tx, "order 7: take one lamp") is True
        assert semel.once_in(tx, "order 8", "90 days") is True
        tx.rollback()
        assert semel.once_in(tx, "order 7: take one lamp") is True
    with engine.begin() as tx:
        assert semel.once_in(tx, "order 7: take one lamp", "90 days") is False
        assert semel.once_in(tx, "order 8") is True


def test_what_cannot_run_sql_is_named(shop: semel.Semel) -> None:
    @shop.once
    def take() -> Any:
        return semel.complete(object(), 1)

    with pytest.raises(semel.ConfigError, match="cannot run SQL on a object"):
        take()


def test_a_connection_without_a_transaction_is_refused(stock: str) -> None:
    shop = semel.Semel(stock, namespace="shop")

    @shop.once(key="order_id", completes="handler")
    def take(order_id: str) -> Any:
        with psycopg.connect(stock, autocommit=True) as connection:
            return semel.complete(connection, 1)

    with pytest.raises(semel.ConfigError, match="needs a transaction"):
        take("A-1")


def _outside_psycopg(url: str) -> Any:
    return psycopg.connect(url)


def _outside_sqlalchemy(url: str) -> Any:
    import sqlalchemy
    from sqlalchemy.orm import sessionmaker

    engine = sqlalchemy.create_engine(url.replace("postgres://", URL_OF_SQLALCHEMY), poolclass=sqlalchemy.NullPool)
    return sessionmaker(engine).begin()


@pytest.mark.parametrize("begin", [_outside_psycopg, _outside_sqlalchemy])
def test_a_transaction_that_is_open_when_the_function_returns_is_refused(stock: str, begin: Any) -> None:
    import sqlalchemy

    shop = semel.Semel(stock, namespace="shop")
    sql: Any = TAKE if begin is _outside_psycopg else sqlalchemy.text(TAKE)
    opened: list[Any] = []

    @shop.once(key="order_id", completes="handler", wait="20s")
    def take(order_id: str) -> Any:
        opened[-1].execute(sql)
        return semel.complete(opened[-1], {"ok": True})

    # It leaves the transaction, which rolls back: nothing happened, and the next call may run.
    began = time.monotonic()
    with pytest.raises(semel.ConfigError, match="begin and commit it inside the function"), begin(stock) as tx:
        opened.append(tx)
        take("A-1")
    assert time.monotonic() - began < 8, "it must not wait for a record that its own caller holds"
    assert left(stock) == 10
    # Who commits all the same has made it happen, and that is what the next call hears.
    with begin(stock) as tx:
        opened.append(tx)
        with pytest.raises(semel.ConfigError, match="begin and commit it inside the function"):
            eventually(lambda: take("A-1"))
    assert eventually(lambda: take("A-1")) == {"ok": True}
    assert left(stock) == 9


def eventually(call: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 40
    while True:
        try:
            return call()
        except semel.Again:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_what_was_completed_and_not_committed_is_not_done(stock: str) -> None:
    shop = semel.Semel(stock, namespace="shop", record_within="500ms")

    @shop.once(key="order_id", completes="handler")
    def take(order_id: str) -> Any:
        with psycopg.connect(stock) as tx:
            value = semel.complete(tx, {"ok": True})
            tx.rollback()
            return value

    outcome = take.outcome("A-1")
    assert isinstance(outcome, semel.NotCompleted) and "its transaction has not committed" in str(outcome)
