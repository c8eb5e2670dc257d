"""The dbt package in other orders and strategies, and on other databases."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import sqlglot

from databases import Postgres
from dbt_runs import DELIVERIES, Dbt, check, halves, on_duckdb

STRATEGIES = ["merge", "delete+insert"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_backfill_on_duckdb(tmp_path: Path, strategy: str) -> None:
    """The later half lands first; the earlier one is older than every overlap, so its run is told since when."""
    since = "2026-01-01 00:00:00+00"
    check(*on_duckdb(tmp_path), halves()[::-1], strategy=strategy, semel_since=since, semel_horizon_hours=24 * 20)


def test_broken_horizon_is_told(tmp_path: Path) -> None:
    dbt, land, _ = on_duckdb(tmp_path)
    land(DELIVERIES)
    found = dbt("test", "--select", "package:semel,test_name:semel_horizon", semel_horizon_hours=24)
    assert list(found.values()) == ["fail"], found


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_on_postgres(tmp_path: Path, strategy: str) -> None:
    database = Postgres()
    database.part("ddl")
    url = urlsplit(database.url)
    environment = {
        "SEMEL_DBT_HOST": url.hostname or "127.0.0.1",
        "SEMEL_DBT_PORT": str(url.port),
        "SEMEL_DBT_USER": url.username or "postgres",
        "SEMEL_DBT_PASSWORD": url.password or "",
        "SEMEL_DBT_DATABASE": url.path[1:],
    }
    dbt = Dbt(tmp_path, "postgres", environment, os.environ["SEMEL_TEST_DBT_PYTHON"])
    check(dbt, database.land, database.effects, halves(), strategy=strategy, semel_horizon_hours=24 * 20)


def test_compiles_for_bigquery(tmp_path: Path) -> None:
    """Without an account, so nothing is run. The parser accepts more than BigQuery does: this finds broken text only."""
    dbt = Dbt(tmp_path, "bigquery", {}, os.environ["SEMEL_TEST_DBT_PYTHON"])
    offline = ["compile", "--no-introspect", "--no-populate-cache"]
    model = tmp_path / "target/compiled/semel/models/semel_effects.sql"
    dbt(*offline, pretend_incremental=False)
    assert "union all" not in model.read_text()
    dbt(*offline, pretend_incremental=True, semel_since="2026-03-01 00:00:00+00", semel_answer=True)
    assert "received_at >= timestamp '2026-03-01 00:00:00+00'" in model.read_text()
    assert "from `nobody`.`semel`.`semel_effects`\n  where event_id in (select event_id from batch)" in model.read_text()
    assert "payload, answer_status, answer" in model.read_text()
    horizon = ["--select", "test_name:semel_horizon"]
    dbt(*offline, *horizon, pretend_incremental=True, semel_since="2026-03-01 00:00:00+00", semel_horizon_hours=168)
    compiled = list((tmp_path / "target/compiled").rglob("*.sql"))
    assert len(compiled) == 8
    for file in compiled:
        for parsed in sqlglot.parse(file.read_text(), dialect="bigquery"):
            assert parsed is not None and not isinstance(parsed, sqlglot.exp.Command), file
