"""The pytest plugin and the server for the prover."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, Callable

import psycopg
import pytest

import semel
import semel.celery
from semel.testing import Deliver, serve

from .conftest import free_port, wait_for_port

Ledger = Callable[[], int]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger"
    path.touch()
    return path


def effects(ledger: Path) -> int:
    return len(ledger.read_text().splitlines())


def charge_into(ledger: Path, **terms: Any) -> Any:
    shop = semel.Semel("postgres://nobody@127.0.0.1:1/never", namespace="shop")  # the plugin's store is used instead

    @shop.once(key="order_id", **terms)
    def charge(order_id: str) -> str:
        receipt = f"receipt of {order_id}\n"
        with ledger.open("a") as file:
            file.write(receipt)
        return receipt

    return charge


def test_twice_and_at_once(deliver: Deliver, ledger: Path) -> None:
    charge = charge_into(ledger)
    first, second = deliver.twice(charge, "A-1")
    assert first == second == "receipt of A-1\n" and effects(ledger) == 1
    assert set(deliver.at_once(charge, "A-2", copies=8)) == {"receipt of A-2\n"}
    assert effects(ledger) == 2


@pytest.mark.parametrize(("in_doubt", "allowed"), [("retry", "at least one"), ("park", "at most one")])
def test_a_crash_at_every_turn(deliver: Deliver, ledger: Path, in_doubt: str, allowed: str) -> None:
    charge = charge_into(ledger, in_doubt=in_doubt)
    seen = []
    for crash in deliver.crashes(charge, "A-1"):
        assert crash.allows(effects(ledger)), crash
        seen.append(crash.point)
        assert crash.allowed == allowed
    assert seen[:4] == ["before the function", "after the function", "after the record", "line 2"] and len(seen) >= 6
    # Under retry the crashes between effect and record repeat the effect; under park none does.
    assert effects(ledger) > len(seen) if in_doubt == "retry" else effects(ledger) < len(seen)


def test_a_crash_at_every_turn_of_a_transaction(deliver: Deliver, database: str) -> None:
    shop = semel.Semel(database, namespace="shop")
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE stock (n int); INSERT INTO stock VALUES (0)")
    on_database = Deliver(Path("unused"), database)

    @shop.once(key="order_id", completes="handler")
    def take(order_id: str) -> Any:
        with psycopg.connect(database) as tx:
            tx.execute("UPDATE stock SET n = n + 1")
            return semel.complete(tx, {"ok": True})

    def taken() -> int:
        with psycopg.connect(database) as connection:
            row = connection.execute("SELECT n FROM stock").fetchone()
            return int(row[0]) if row else -1

    points = 0
    for crash in on_database.crashes(take, "A-1"):
        assert crash.allows(taken()), crash
        points += 1
    assert crash.allowed == "exactly one" and taken() >= points >= 5


def test_celery_tasks_and_async_functions_can_be_delivered(deliver: Deliver, ledger: Path) -> None:
    from celery import Celery

    app = Celery("shop", broker="memory://", task_cls="semel.celery:Task")
    semel.celery.setup(app, semel.Semel("postgres://nobody@127.0.0.1:1/never"))

    @app.task(bind=True, once="order", shared=False)
    def charge(self: Any, order: str) -> int:
        with ledger.open("a") as file:
            file.write("x\n")
        return self.request.retries  # type: ignore[no-any-return]

    @semel.Semel("memory:").once
    async def ship(order: str) -> str:
        return order

    assert deliver.twice(charge, "A-1") == [0, 0]
    assert deliver.at_once(charge, "A-2", copies=4) == [0] * 4
    assert effects(ledger) == 2
    for crash in deliver.crashes(charge, "A-3"):
        assert crash.allows(effects(ledger) - 2), crash
    assert deliver.at_once(ship, "A-1") == ["A-1"] * 8


def test_what_is_not_protected_is_refused(deliver: Deliver) -> None:
    with pytest.raises(TypeError, match="nothing protects it"):
        deliver.twice(print, "A-1")


def test_parked_work_is_not_delivered_for_ever() -> None:
    def parked() -> None:
        raise semel.Parked("a person must look first")

    status, said, after = serve._call(parked, b"{}")
    assert (status, after) == (202, None) and "a person" in said["error"]


def test_a_task_behind_http(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "import semel\n"
        "shop = semel.Semel('memory:')\n"
        "runs = []\n"
        "@shop.once(key='order')\n"
        "def charge(order: str, cents: int = 1):\n"
        "    runs.append(order)\n"
        "    if order == 'bad': raise ValueError('no')\n"
        "    return {'runs': len(runs)}\n"
    )
    port = free_port()
    command = [sys.executable, "-m", "semel.testing.serve", "shop:charge", "--port", str(port)]
    server = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)

    def post(**arguments: Any) -> tuple[int, Any]:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/", json.dumps(arguments).encode())
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    try:
        wait_for_port(port)
        assert post(order="A-1") == post(order="A-1", cents=1) == (200, {"runs": 1})
        assert post(order="A-1", cents=2)[0] == 422
        assert post(order="bad") == (500, {"error": "ValueError: no"})
    finally:
        server.terminate()
        server.wait(20)
