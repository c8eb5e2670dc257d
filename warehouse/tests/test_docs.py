"""The SQL of docs/warehouse.md."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest
import sqlglot

from databases import ROOT, DuckDb
from deliveries import Delivery, traffic, winners

BLOCKS = dict(
    re.findall(r"```sql\n-- ([^\n]+)\n(.*?)```", (ROOT / "docs/warehouse.md").read_text(encoding="utf-8"), re.DOTALL)
)


def write_files(deliveries: list[Delivery], **answer: object) -> None:
    """Two closed files, and one that is still being written."""
    Path("landing").mkdir()
    for name, some in (("1.jsonl", deliveries[:60]), ("2.jsonl", deliveries[60:]), ("3.open", deliveries[:1])):
        rows = [asdict(one) | answer for one in some]
        lines = [json.dumps(row, default=lambda it: it.strftime("%Y-%m-%dT%H:%M:%S.%fZ")) for row in rows]
        Path("landing", name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_closed_files_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deliveries = traffic(100)
    monkeypatch.chdir(tmp_path)
    write_files(deliveries)
    database = DuckDb()
    database.part("ddl")
    for _ in range(2):
        database.run(BLOCKS["DuckDB"])
        database.merge()
    assert database.run("SELECT count(*) FROM landing") == [(2 * len(deliveries),)]
    assert database.effects() == winners(deliveries)


def test_closed_files_with_answers_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deliveries = traffic(100)
    monkeypatch.chdir(tmp_path)
    write_files(deliveries, answer_status=201, answer="made")
    database = DuckDb()
    database.part("ddl.answer")
    for _ in range(2):
        database.run(BLOCKS["DuckDB with answers"])
        database.merge(name="merge.answer")
    assert database.run("SELECT count(*) FROM landing") == [(2 * len(deliveries),)]
    assert database.effects() == winners(deliveries)
    assert database.run("SELECT DISTINCT answer_status, answer FROM effects") == [(201, "made")]


def test_every_load_is_executed() -> None:
    assert BLOCKS.keys() == {"DuckDB", "DuckDB with answers", "BigQuery"}


def test_subscription_can_be_parsed() -> None:
    parsed = sqlglot.parse(BLOCKS["BigQuery"], dialect="bigquery")
    assert len(parsed) == 3
    assert not any(isinstance(one, sqlglot.exp.Command) for one in parsed)
