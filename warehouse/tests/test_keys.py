"""Keys made in a warehouse are the gate's, or none."""

from __future__ import annotations

import importlib.util
import json
import math
import random
import subprocess
from pathlib import Path
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
        # It reads no forms, and no JSON in strings.
        plain = plain and not any(part.startswith("form:") or "~json" in part for part in vector["rule"])
        assert key is not None or not plain, f"{vector['name']} is of plain parts"
    assert sum(key is not None for _, key in scalars) >= 190


def test_duckdb_macro_knows_no_depth(scalars: list[tuple[dict, str | None]]) -> None:
    """What the printed comment says."""
    deep = [(vector["error"], key is not None) for vector, key in scalars if vector["name"] in TOO_DEEP]
    assert deep == [("too_deep", True)] * 2


def _literals() -> list[str]:
    """Numbers of all sizes, as doubles write them and as they do not."""
    dice = random.Random(11)
    literals = [f"{dice.uniform(-1, 1) * 10.0 ** dice.randrange(-8, 19)!r}" for _ in range(1500)]
    literals += [f"{dice.randrange(10**12)}e{dice.randrange(-16, 8)}" for _ in range(1500)]
    literals += [str(dice.randrange(-(2**64), 2**65) >> dice.randrange(64)) for _ in range(1500)]
    literals += [f"{dice.uniform(-1, 1) * 10.0 ** dice.randrange(-8, 19):.17g}" for _ in range(1500)]
    literals += [f"{dice.randrange(10**5)}.{dice.randrange(10**18):018}" for _ in range(500)]
    return literals


def _vector(n: int, literal: str) -> dict[str, Any]:
    vector = {"name": f"{n}: {literal}", "namespace": "n", "route": "r", "rule": ["/v"], "payload": f'{{"v": {literal}}}'}
    return {**vector, **check.compute(vector)}


def test_bigquery_function_writes_numbers_as_semel_does(tmp_path: Path) -> None:
    dice = random.Random(12)
    literals = [f"{literal}e{dice.randrange(-400, 400)}" for literal in _literals() if "e" not in literal]
    vectors = [_vector(n, literal) for n, literal in enumerate(_literals() + literals)]
    (tmp_path / "keys.json").write_text(json.dumps({"vectors": vectors}), encoding="utf-8")
    program = [ROOT / "warehouse/tests/vectors.mjs", TEXTS / "key.bigquery.sql", tmp_path / "keys.json"]
    said = json.loads(subprocess.run(["node", *program], check=True, capture_output=True).stdout)
    assert said == {"tried": len(vectors), "faults": []}


def test_duckdb_macro_writes_numbers_as_semel_does(duckdb_keys: DuckDb) -> None:
    literals = _literals()
    payloads = [f'{{"v": {literal}}}' for literal in literals]
    duckdb_keys.run("CREATE OR REPLACE TABLE payloads AS SELECT unnest($payloads) AS payload", {"payloads": payloads})
    rows = dict(duckdb_keys.run("SELECT payload, semel_key_scalar('n', 'r', ['/v'], payload) FROM payloads"))
    made = 0
    for payload, literal in zip(payloads, literals):
        expected = check.compute({"namespace": "n", "route": "r", "rule": ["/v"], "payload": payload}).get("key")
        assert rows[payload] in (None, expected), payload
        plain = math.isfinite(float(literal)) and 1e-4 <= abs(float(literal)) < 1e15
        assert rows[payload] is not None or expected is None or not plain, payload
        made += rows[payload] is not None
    assert made > 2000


def _postgres() -> Postgres:
    database = Postgres()
    database.run((TEXTS / "key.postgres.sql").read_text(encoding="utf-8"))
    for migration in ("0002_key", "0013_key_parts"):
        database.run((ROOT / f"crates/semel-postgres/migrations/{migration}.sql").read_text(encoding="utf-8"))
    return database


def test_postgres_function_writes_numbers_as_semel_does() -> None:
    database = _postgres()
    database.run(
        "CREATE FUNCTION tried(literal text) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN RETURN semel.key_number(literal);"
        " EXCEPTION WHEN SQLSTATE 'SM004' THEN RETURN split_part(SQLERRM, ': ', 2); END $f$"
    )
    vectors = [(literal, _vector(0, literal)) for literal in _literals()]
    expected = [(literal, it.get("error") or it["parts"][0]["text"]) for literal, it in vectors]
    sql = "SELECT literal, tried(literal) FROM unnest(%s::text[]) WITH ORDINALITY AS l(literal, n) ORDER BY n"
    assert database.run(sql, [_literals()]) == expected
    assert sum(said == "inexact_number" for _, said in expected) > 500


def test_postgres_text_stands_alone() -> None:
    """A database that is only a warehouse needs no `semel migrate`; the vectors are a test of the store."""
    database = _postgres()
    for vector in VECTORS[:20]:
        values = [vector["namespace"], vector["route"], vector["rule"], vector["payload"]]
        if "key" in vector:
            assert database.run("SELECT semel.key(%s, %s, %s, %s)", values) == [(vector["key"],)], vector["name"]
