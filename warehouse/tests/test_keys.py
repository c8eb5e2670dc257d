"""Keys made in a warehouse are the gate's, or none."""

from __future__ import annotations

import importlib.util
import json
import math
import random
import subprocess
from typing import Any

import pytest

from databases import ROOT, DuckDb, Postgres

TEXTS = ROOT / "crates/semel-cli/src/commands/warehouse"
VECTORS = json.loads((ROOT / "vectors/keys.json").read_text(encoding="utf-8"))["vectors"]

_spec = importlib.util.spec_from_file_location("check", ROOT / "vectors/check.py")
check: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check)

# DuckDB cannot count levels: Semel refuses these payloads, wherever their depth is.
TOO_DEEP = {"65 levels elsewhere", "65 levels of objects"}


def test_bigquery_function_makes_every_vector() -> None:
    """Keys, fingerprints and refusals, by Node: the engine is BigQuery's, the function around the text is not."""
    program = [ROOT / "warehouse/tests/vectors.mjs", TEXTS / "key.bigquery.sql", ROOT / "vectors/keys.json"]
    said = json.loads(subprocess.run(["node", *program], check=True, capture_output=True).stdout)
    assert said == {"tried": len(VECTORS), "faults": []}


@pytest.fixture(scope="module")
def duckdb_keys() -> DuckDb:
    database = DuckDb()
    database.run((TEXTS / "key.duckdb.sql").read_text(encoding="utf-8"))
    return database


@pytest.fixture(scope="module")
def scalars(duckdb_keys: DuckDb) -> list[tuple[dict, str | None]]:
    """Every vector that text can hold, with the key that the macro makes of it."""
    tried = [vector for vector in VECTORS if "payload_base64" not in vector]
    duckdb_keys.run(
        "CREATE TABLE vectors (n INTEGER, namespace VARCHAR, route VARCHAR, rule VARCHAR[], payload VARCHAR, method VARCHAR,"
        " caller VARCHAR, named MAP(VARCHAR, VARCHAR))"
    )
    words = ["namespace", "route", "rule", "payload", "method", "caller"]
    for n, vector in enumerate(tried):
        named = vector.get("named", {})
        values = [n, *map(vector.get, words), list(named), list(named.values())]
        duckdb_keys.run("INSERT INTO vectors VALUES (?, ?, ?, ?, ?, ?, ?, MAP(?::VARCHAR[], ?::VARCHAR[]))", values)
    made = duckdb_keys.run(
        "SELECT semel_key_scalar(namespace, route, rule, payload, method := method, caller := caller, named := named)"
        " FROM vectors ORDER BY n"
    )
    return [(vector, key) for vector, (key,) in zip(tried, made, strict=True)]


def test_duckdb_macro_never_makes_another_key(scalars: list[tuple[dict, str | None]]) -> None:
    for vector, key in scalars:
        if vector["name"] in TOO_DEEP:
            continue
        assert key in (None, vector.get("key")), vector["name"]
        plain = all(part["type"] in "sbzh" for part in vector.get("parts", [{"type": "refused"}]))
        assert key is not None or not plain, f"{vector['name']} is of plain parts"
    assert sum(key is not None for _, key in scalars) >= 190


def test_duckdb_macro_knows_no_depth(scalars: list[tuple[dict, str | None]]) -> None:
    """What the printed comment says."""
    deep = [(vector["error"], key is not None) for vector, key in scalars if vector["name"] in TOO_DEEP]
    assert deep == [("too_deep", True)] * 2


def test_duckdb_macro_writes_numbers_as_semel_does(duckdb_keys: DuckDb) -> None:
    dice = random.Random(11)
    literals = [f"{dice.uniform(-1, 1) * 10.0 ** dice.randrange(-8, 19)!r}" for _ in range(1500)]
    literals += [f"{dice.randrange(10**12)}e{dice.randrange(-16, 8)}" for _ in range(1500)]
    literals += [str(dice.randrange(-(2**64), 2**65) >> dice.randrange(64)) for _ in range(1500)]
    payloads = [f'{{"v": {literal}}}' for literal in literals]
    duckdb_keys.run("CREATE OR REPLACE TABLE payloads AS SELECT unnest($payloads) AS payload", {"payloads": payloads})
    rows = dict(duckdb_keys.run("SELECT payload, semel_key_scalar('n', 'r', ['/v'], payload) FROM payloads"))
    made = 0
    for payload, literal in zip(payloads, literals):
        expected = check.compute({"namespace": "n", "route": "r", "rule": ["/v"], "payload": payload}).get("key")
        assert rows[payload] in (None, expected), payload
        plain = math.isfinite(float(literal)) and 1e-4 <= abs(float(literal)) < 1e15
        assert rows[payload] is not None or not plain, payload
        made += rows[payload] is not None
    assert made > 2000


def test_postgres_text_stands_alone() -> None:
    """A database that is only a warehouse needs no `semel migrate`; the vectors are a test of the store."""
    database = Postgres()
    database.run((TEXTS / "key.postgres.sql").read_text(encoding="utf-8"))
    database.run((ROOT / "crates/semel-postgres/migrations/0002_key.sql").read_text(encoding="utf-8"))
    for vector in VECTORS[:20]:
        values = [vector["namespace"], vector["route"], vector["rule"], vector["payload"]]
        if "key" in vector:
            assert database.run("SELECT semel.key(%s, %s, %s, %s)", values) == [(vector["key"],)], vector["name"]
