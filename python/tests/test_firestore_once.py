"""``semel.complete`` inside a function that runs once, in transactions and batches of Firestore."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Awaitable, Callable, Iterator

import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

import semel
import semel.firestore

from .conftest import Start

Take = Callable[[firestore.Client], Any]


def client_of(project: str) -> firestore.Client:
    return firestore.Client(project=project, credentials=AnonymousCredentials())


@pytest.fixture
def db(firestore_project: str) -> Iterator[firestore.Client]:
    """A database with ten lamps in stock."""
    client = client_of(firestore_project)
    client.document("stock/lamp").set({"n": 10})
    yield client
    client.close()


@pytest.fixture
def shop(db: firestore.Client) -> semel.Semel:
    return semel.Semel(f"firestore://{db.project}", cache=0)


def left(db: firestore.Client) -> Any:
    return db.document("stock/lamp").get().get("n")


def take_in_transaction(db: firestore.Client) -> Any:
    lamp = db.document("stock/lamp")

    @firestore.transactional
    def take(transaction: firestore.Transaction) -> Any:
        n = lamp.get(transaction=transaction).get("n") - 1
        value = semel.complete(transaction, {"left": n})
        transaction.update(lamp, {"n": n})
        return value

    return take(db.transaction())


def fill(db: firestore.Client, batch: firestore.WriteBatch) -> Any:
    lamp = db.document("stock/lamp").get()
    value = semel.complete(batch, {"left": lamp.get("n") - 1})
    condition = db.write_option(last_update_time=lamp.update_time)
    batch.update(lamp.reference, {"n": value["left"]}, option=condition)
    return value


def take_in_batch(db: firestore.Client) -> Any:
    return semel.firestore.run_in_batch(db, lambda batch: fill(db, batch))


@pytest.mark.parametrize("take", [take_in_transaction, take_in_batch])
def test_record_and_effect_are_one(db: firestore.Client, shop: semel.Semel, take: Take) -> None:
    once = shop.once(key="order_id", completes="handler")

    @once
    def order(order_id: str) -> dict[str, int]:
        return take(db)  # type: ignore[no-any-return]

    assert isinstance(order.outcome("A-1"), semel.Ran)
    assert isinstance(order.outcome("A-1"), semel.Replayed)
    assert order("A-1") == {"left": 9}
    assert order("A-2") == {"left": 8}
    assert left(db) == 8


async def take_in_async_transaction(db: firestore.AsyncClient) -> Any:
    lamp = db.document("stock/lamp")

    @firestore.async_transactional
    async def take(transaction: firestore.AsyncTransaction) -> Any:
        n = (await lamp.get(transaction=transaction)).get("n") - 1
        value = await semel.complete(transaction, {"left": n})
        transaction.update(lamp, {"n": n})
        return value

    return await take(db.transaction())


async def take_in_async_batch(db: firestore.AsyncClient) -> Any:
    lamp = await db.document("stock/lamp").get()
    batch = db.batch()
    value = await semel.complete(batch, {"left": lamp.get("n") - 1})
    batch.update(lamp.reference, {"n": value["left"]})
    await batch.commit()
    return value


@pytest.mark.parametrize("take", [take_in_async_transaction, take_in_async_batch])
def test_asynchronous_clients_are_awaited(
    db: firestore.Client, shop: semel.Semel, take: Callable[[Any], Awaitable[Any]]
) -> None:
    async def calls() -> list[Any]:
        client = firestore.AsyncClient(project=db.project, credentials=AnonymousCredentials())

        @shop.once(key="order_id", completes="handler")
        async def order(order_id: str) -> dict[str, int]:
            return await take(client)  # type: ignore[no-any-return]

        return [await order("A-1"), await order("A-1")]

    assert asyncio.run(calls()) == [{"left": 9}, {"left": 9}]
    assert left(db) == 9


def test_copies_at_once_take_one(db: firestore.Client, shop: semel.Semel) -> None:
    @shop.once(key="order_id", completes="handler", wait="30s")
    def order(order_id: str) -> dict[str, int]:
        return take_in_batch(db)  # type: ignore[no-any-return]

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(order, ["A-1"] * 8))
    assert answers == [{"left": 9}] * 8
    assert left(db) == 9


@pytest.mark.parametrize("take", [take_in_transaction, take_in_batch])
def test_what_does_not_commit_is_not_recorded(db: firestore.Client, shop: semel.Semel, take: Take) -> None:
    runs = iter(["raises", "swallows", "works"])

    class Trouble(Exception):
        pass

    @shop.once(key="order_id", completes="handler", max_attempts=5)
    def order(order_id: str) -> Any:
        how = next(runs)
        if how == "works":
            return take(db)
        try:
            semel.firestore.run_in_batch(db, lambda batch: 1 / (fill(db, batch) is None))
        except ZeroDivisionError:
            if how == "raises":
                raise Trouble from None

    with pytest.raises(Trouble):
        order("A-1")
    with pytest.raises(semel.NotCompleted):
        order("A-1")
    assert left(db) == 10
    assert order("A-1") == {"left": 9}
    assert left(db) == 9


def test_commit_whose_answer_was_lost_is_known_and_its_value_told(
    db: firestore.Client, shop: semel.Semel, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, lost = firestore.WriteBatch.commit, iter([True])

    def commit_and_lose_the_answer(batch: Any, *args: Any, **kwargs: Any) -> Any:
        answer = commit(batch, *args, **kwargs)
        if next(lost, False):  # the client's own repetition is refused
            raise exceptions.FailedPrecondition("the stored version does not match")
        return answer

    monkeypatch.setattr(firestore.WriteBatch, "commit", commit_and_lose_the_answer)

    @shop.once(key="order_id", completes="handler")
    def order(order_id: str) -> dict[str, int]:
        return take_in_batch(db)  # type: ignore[no-any-return]

    assert order("A-1") == {"left": 9}
    assert order("A-1") == {"left": 9}
    assert left(db) == 9


def test_overtaken_run_writes_nothing(db: firestore.Client, shop: semel.Semel) -> None:
    @shop.once(key="order_id", completes="handler")
    def order(order_id: str) -> Any:
        record = db.document(f"semel_records/{semel.run().key}")
        record.update({"fence": semel.run().fence + 1})
        return take_in_batch(db)

    with pytest.raises(semel.Stale):
        order("A-1")
    assert left(db) == 10


def test_batch_that_nobody_commits_completes_nothing(db: firestore.Client, shop: semel.Semel) -> None:
    @shop.once(key="order_id", completes="handler")
    def order(order_id: str) -> Any:
        return fill(db, db.batch())

    with pytest.raises(semel.NotCompleted, match="its transaction has not committed"):
        order("A-1")
    assert left(db) == 10


def test_transaction_around_the_call_is_refused(db: firestore.Client, shop: semel.Semel) -> None:
    @shop.once(key="order_id", completes="handler")
    def order(order_id: str) -> Any:
        return semel.complete(open_around[0], 1)

    open_around: list[firestore.Transaction] = []

    @firestore.transactional
    def around(transaction: firestore.Transaction) -> Any:
        open_around.append(transaction)
        return order("A-1")

    with pytest.raises(semel.ConfigError, match="begin and commit it inside"):
        around(db.transaction())


def test_document_over_the_limit_is_refused_with_the_record(db: firestore.Client, shop: semel.Semel) -> None:
    sizes = iter([1_048_488, 10])

    @shop.once(key="order_id", completes="handler")
    def order(order_id: str) -> Any:
        size = next(sizes)

        def write(batch: firestore.WriteBatch) -> Any:
            value = fill(db, batch)
            batch.create(db.document("notes/A-1"), {"text": b"x" * size})
            return value

        return semel.firestore.run_in_batch(db, write)

    with pytest.raises(exceptions.InvalidArgument, match="longer than"):
        order("A-1")
    assert left(db) == 10
    assert order("A-1") == {"left": 9}


def test_record_and_effect_must_be_in_one_database(db: firestore.Client) -> None:
    for url, says in [
        ("firestore://another-project", "project another-project"),
        (f"firestore://{db.project}/another", "database another"),
    ]:
        shop = semel.Semel(url)

        @shop.once(key="order_id", completes="handler")
        def order(order_id: str) -> Any:
            return take_in_batch(db)

        with pytest.raises(semel.ConfigError, match=says):
            order("A-1")
    assert left(db) == 10


def test_prefix_is_that_of_the_store(db: firestore.Client) -> None:
    shop = semel.Semel(f"firestore://{db.project}?prefix=shop", cache=0)

    @shop.once(key="order_id", completes="handler")
    def order(order_id: str) -> Any:
        return take_in_batch(db)

    assert [order("A-1"), order("A-1")] == [{"left": 9}] * 2
    assert len(list(db.collection("shop_records").stream())) == 1


def test_what_writes_elsewhere_is_refused(db: firestore.Client, shop: semel.Semel) -> None:
    @shop.once(key="order_id", completes="handler")
    def order(order_id: str) -> Any:
        return semel.complete(object(), 1)

    with pytest.raises(semel.ConfigError, match="does not write to Firestore: pass your transaction or batch"):
        order("A-1")
    with pytest.raises(semel.ConfigError, match="call semel.firestore.once"):
        semel.once_in(db.batch(), "order 7")


@pytest.mark.parametrize("point", ["before", "after"])
def test_killed_process_leaves_both_or_neither(db: firestore.Client, start: Start, point: str) -> None:
    killed = start("firestore_once.py", db.project, point)
    killed.communicate(timeout=60)
    assert killed.returncode == -9
    assert left(db) == (10 if point == "before" else 9)
    for _ in range(2):
        again = start("firestore_once.py", db.project, "never")
        assert again.communicate(timeout=60)[0] == "9\n"
    assert left(db) == 9
