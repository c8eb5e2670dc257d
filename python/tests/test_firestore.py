"""``semel.firestore`` on Google's emulator: record and effect are one Commit, in transactions and in batches."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
import requests
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

import semel
import semel.firestore

from .conftest import PROGRAMS
from .firestore_documents import VECTORS, as_document

_COMPLETIONS = {vector["name"]: vector for vector in VECTORS["complete"]}
_RUNNING = VECTORS["complete"][0]
KEY, FENCE = _RUNNING["key"], _RUNNING["fence"]

DEPLOY = Path(__file__).parents[2] / "deploy" / "firestore"

Take = Callable[[firestore.Client, str, int], None]


@pytest.fixture
def db(firestore_project: str) -> Iterator[firestore.Client]:
    """A database with ten lamps in stock, and a record of KEY that runs."""
    client = firestore.Client(project=firestore_project, credentials=AnonymousCredentials())
    client.document("stock/lamp").set({"n": 10})
    client.document(f"semel_records/{KEY}").set(as_document(_RUNNING["before"]) or {})
    yield client
    client.close()


def _stock(db: firestore.Client) -> Any:
    return db.document("stock/lamp").get().get("n")


def _record(db: firestore.Client) -> dict[str, Any]:
    return db.document(f"semel_records/{KEY}").get().to_dict() or {}


def _take_in_transaction(db: firestore.Client, key: str, fence: int) -> None:
    lamp = db.document("stock/lamp")

    @firestore.transactional
    def take(transaction: firestore.Transaction) -> None:
        left = lamp.get(transaction=transaction).get("n") - 1
        semel.firestore.complete(transaction, key, fence, 201, f'{{"left": {left}}}')
        transaction.update(lamp, {"n": left})

    take(db.transaction())


def _take_in_batch(db: firestore.Client, key: str, fence: int) -> None:
    def take(batch: firestore.WriteBatch) -> None:
        found = db.document("stock/lamp").get()
        semel.firestore.complete(batch, key, fence, 201, f'{{"left": {found.get("n") - 1}}}')
        batch.update(found.reference, {"n": found.get("n") - 1}, option=db.write_option(last_update_time=found.update_time))

    semel.firestore.run_in_batch(db, take)


@pytest.fixture(params=[_take_in_transaction, _take_in_batch], ids=["transaction", "batch"])
def take(request: pytest.FixtureRequest) -> Take:
    return request.param  # type: ignore[no-any-return]


# === complete ===


def test_record_and_effect_are_written_together(db: firestore.Client, take: Take) -> None:
    before = _record(db)
    take(db, KEY, FENCE)
    after = _record(db)
    assert _stock(db) == 9
    assert after["state"] == 2 and after["result"].endswith(b'{"left": 9}')
    assert {name: after[name] for name in ("fp", "owner", "born", "fence", "attempts")} == {
        name: before[name] for name in ("fp", "owner", "born", "fence", "attempts")
    }
    assert after["expires_at"] - after["lease_until"] >= before["expires_at"] - before["lease_until"]


def test_second_completion_writes_nothing(db: firestore.Client, take: Take) -> None:
    take(db, KEY, FENCE)
    with pytest.raises(semel.firestore.Already):
        take(db, KEY, FENCE)
    assert _stock(db) == 9


@pytest.mark.parametrize("name", [name for name, vector in _COMPLETIONS.items() if vector.get("refused") == "stale"])
def test_stale_run_writes_nothing(db: firestore.Client, take: Take, name: str) -> None:
    record, before = db.document(f"semel_records/{KEY}"), as_document(_COMPLETIONS[name]["before"])
    record.set(before) if before else record.delete()
    with pytest.raises(semel.Stale, match=KEY):
        take(db, KEY, _COMPLETIONS[name]["fence"])
    assert _stock(db) == 10 and _record(db) == (before or {})


def test_run_that_is_overtaken_between_read_and_commit_writes_nothing(db: firestore.Client) -> None:
    batch = db.batch()
    semel.firestore.complete(batch, KEY, FENCE)
    batch.update(db.document("stock/lamp"), {"n": 9})
    db.document(f"semel_records/{KEY}").update({"fence": FENCE + 1})
    with pytest.raises(exceptions.FailedPrecondition):
        batch.commit()
    assert _stock(db) == 10 and _record(db)["state"] == 1


def test_commit_that_the_client_repeats_counts_once(db: firestore.Client, take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    """Google's client sends a Commit again when it is told UNAVAILABLE, though the first may have been written."""
    api: Any = db._firestore_api
    send = api.commit

    def send_twice(*args: Any, **named: Any) -> Any:
        send(*args, **named)
        return send(*args, **named)

    monkeypatch.setattr(api, "commit", send_twice)
    with pytest.raises((semel.firestore.Already, exceptions.InvalidArgument)):
        take(db, KEY, FENCE)
    assert _stock(db) == 9 and _record(db)["state"] == 2


def test_completion_after_a_write_of_the_transaction_is_refused(db: firestore.Client) -> None:
    @firestore.transactional
    def take(transaction: firestore.Transaction) -> None:
        transaction.update(db.document("stock/lamp"), {"n": 9})
        semel.firestore.complete(transaction, KEY, FENCE)

    with pytest.raises(Exception, match="read after write"):
        take(db.transaction())
    assert _stock(db) == 10


def test_body_that_does_not_fit_is_not_kept(db: firestore.Client) -> None:
    batch = db.batch()
    semel.firestore.complete(batch, KEY, str(FENCE), 200, b"\xff" * 1_100_000, headers={"content-type": "image/png"})
    batch.commit()
    assert _record(db)["result"].endswith(b'{"status":200,"headers":{"content-type":"image/png"},"body":"not-kept"}')


def test_records_of_another_prefix(db: firestore.Client) -> None:
    db.document(f"orders_records/{KEY}").set(as_document(_RUNNING["before"]) or {})
    batch = db.batch()
    semel.firestore.complete(batch, KEY, FENCE, prefix="orders")
    batch.commit()
    assert db.document(f"orders_records/{KEY}").get().get("state") == 2 and _record(db)["state"] == 1


@pytest.mark.parametrize(
    ("key", "fence", "status", "says"),
    [("order-7", 1, 200, "Semel-Key"), (KEY, "soon", 200, "Semel-Fence"), (KEY, 1, 42, "status 42"),
     (KEY, 1, 200.0, "status 200.0"), (KEY, 1, "200", "status '200'")],
)  # fmt: skip
def test_wrong_argument_is_named(db: firestore.Client, key: str, fence: Any, status: Any, says: str) -> None:
    with pytest.raises(semel.Error, match=says):
        semel.firestore.complete(db.batch(), key, fence, status)


def test_what_does_not_write_to_firestore_is_refused() -> None:
    with pytest.raises(semel.ConfigError, match="pass your transaction or batch"):
        semel.firestore.once("batch", "order 7")  # type: ignore[call-overload]


async def _complete_and_remember(project: str) -> tuple[bool, bool]:
    db = firestore.AsyncClient(project=project, credentials=AnonymousCredentials())

    @firestore.async_transactional
    async def take(transaction: firestore.AsyncTransaction) -> None:
        await semel.firestore.complete(transaction, KEY, FENCE)
        transaction.update(db.document("stock/lamp"), {"n": 9})

    await take(db.transaction())
    heard = []
    for _ in range(2):
        batch = db.batch()
        heard.append(await semel.firestore.once(batch, "order 7"))
        await batch.commit()
    return heard[0], heard[1]


def test_asynchronous_client(db: firestore.Client) -> None:
    import asyncio

    assert asyncio.run(_complete_and_remember(db.project)) == (True, False)
    assert _stock(db) == 9 and _record(db)["state"] == 2


# === once ===


def _take_once(db: firestore.Client, name: str) -> bool:
    def take(batch: firestore.WriteBatch) -> bool:
        if not semel.firestore.once(batch, name):
            return False
        batch.update(db.document("stock/lamp"), {"n": firestore.Increment(-1)})
        return True

    return semel.firestore.run_in_batch(db, take)


def test_name_is_true_once_among_many_at_once(db: firestore.Client) -> None:
    with ThreadPoolExecutor(16) as pool:
        heard = list(pool.map(lambda number: _take_once(db, f"order {number % 4}"), range(48)))
    assert sum(heard) == 4 and _stock(db) == 6


def test_name_is_true_again_after_its_retention(db: firestore.Client) -> None:
    def remember(batch: firestore.WriteBatch) -> bool:
        return semel.firestore.once(batch, "order 7", retention=0.001)

    records = db.collection("semel_records")
    assert semel.firestore.run_in_batch(db, remember)
    [first] = [it for it in records.stream() if it.id != KEY]
    while not semel.firestore.run_in_batch(db, remember):
        pass
    [second] = [it for it in records.stream() if it.id != KEY]
    assert second.get("fence") > first.get("fence") and second.get("born") == second.get("fence")


def test_name_in_a_transaction(db: firestore.Client) -> None:
    @firestore.transactional
    def take(transaction: firestore.Transaction) -> bool:
        if not semel.firestore.once(transaction, "order 7"):
            return False
        transaction.update(db.document("stock/lamp"), {"n": firestore.Increment(-1)})
        return True

    assert [take(db.transaction()), take(db.transaction())] == [True, False]
    assert _stock(db) == 9


def test_name_needs_a_retention(db: firestore.Client) -> None:
    with pytest.raises(semel.ConfigError, match="retention"):
        semel.firestore.once(db.batch(), "order 7", retention=0)


# === run_in_batch ===


def test_asynchronous_client_is_refused(db: firestore.Client) -> None:
    client: Any = firestore.AsyncClient(project=db.project, credentials=AnonymousCredentials())
    with pytest.raises(semel.ConfigError, match="await its commit"):
        semel.firestore.run_in_batch(client, lambda batch: batch.create(client.document("stock/lamp"), {}))


def test_batch_is_given_up_in_time(db: firestore.Client) -> None:
    tries = []

    def create(batch: firestore.WriteBatch) -> None:
        tries.append(batch)
        batch.create(db.document("stock/lamp"), {})

    with pytest.raises(exceptions.AlreadyExists):
        semel.firestore.run_in_batch(db, create, within=2)
    assert len(tries) > 1


# === kills ===


@pytest.mark.parametrize("moment", ["read", "filled", "committed"])
def test_kill_leaves_both_or_neither(db: firestore.Client, moment: str) -> None:
    """In batches; what is killed inside a transaction keeps its locks for 60 seconds, so that is a long test."""
    words = [sys.executable, str(PROGRAMS / "firestore_take.py"), "batch", db.project, KEY, str(FENCE), moment]
    killed = subprocess.run(words, env=os.environ, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    done = moment == "committed"
    assert (_stock(db), _record(db)["state"]) == ((9, 2) if done else (10, 1))
    if not done:
        _take_in_batch(db, KEY, FENCE)
        assert (_stock(db), _record(db)["state"]) == (9, 2)


# === set-up ===


def _as_client(host: str, project: str, path: str) -> int:
    """What a signed-in mobile client hears when it reads a document."""
    claims = base64.urlsafe_b64encode(json.dumps({"sub": "somebody", "user_id": "somebody"}).encode()).rstrip(b"=").decode()
    head = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    url = f"http://{host}/v1/projects/{project}/databases/(default)/documents/{path}"
    return requests.get(url, headers={"Authorization": f"Bearer {head}.{claims}."}, timeout=10).status_code


def test_rules_of_the_set_up_keep_clients_away_from_records(db: firestore.Client, firestore_host: str) -> None:
    rules = (DEPLOY / "firestore.rules").read_text()
    put = requests.put(
        f"http://{firestore_host}/emulator/v1/projects/{db.project}:securityRules",
        json={"rules": {"files": [{"name": "firestore.rules", "content": rules}]}},
        timeout=10,
    )
    assert put.status_code == 200, put.text
    assert _as_client(firestore_host, db.project, "stock/lamp") == 200
    assert _as_client(firestore_host, db.project, f"semel_records/{KEY}") == 403
    assert _as_client(firestore_host, db.project, "semel_letters/any") == 403


@pytest.mark.parametrize("number", [0, 1], ids=["batch", "transaction"])
def test_code_of_the_documentation_runs(db: firestore.Client, number: int) -> None:
    document = (DEPLOY.parents[1] / "docs" / "firestore.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", document, re.DOTALL)
    assert len(blocks) == 2
    exec(blocks[number], {"db": db, "key": KEY, "fence": FENCE, "semel": semel, "firestore": firestore})
    assert (_stock(db), _record(db)["state"]) == (9, 2)
