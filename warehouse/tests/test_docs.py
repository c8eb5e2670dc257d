"""The SQL of docs/warehouse.md."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest
import sqlglot

from databases import ROOT, DuckDb
from deliveries import traffic, winners

BLOCKS = dict(
    re.findall(r"```sql\n-- (\w+)\n(.*?)```", (ROOT / "docs/warehouse.md").read_text(encoding="utf-8"), re.DOTALL)
)


def test_closed_files_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deliveries = traffic(100)
    (tmp_path / "landing").mkdir()
    monkeypatch.chdir(tmp_path)
    for name, some in (("1.jsonl", deliveries[:60]), ("2.jsonl", deliveries[60:]), ("3.open", deliveries[:1])):
        lines = [json.dumps(asdict(one), default=lambda it: it.strftime("%Y-%m-%dT%H:%M:%S.%fZ")) for one in some]
        Path("landing", name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    database = DuckDb()
    database.part("ddl")
    for _ in range(2):
        database.run(BLOCKS["DuckDB"])
        database.merge()
    assert database.run("SELECT count(*) FROM landing") == [(2 * len(deliveries),)]
    assert database.effects() == winners(deliveries)


def test_subscription_can_be_parsed() -> None:
    parsed = sqlglot.parse(BLOCKS["BigQuery"], dialect="bigquery")
    assert len(parsed) == 3
    assert not any(isinstance(one, sqlglot.exp.Command) for one in parsed)
