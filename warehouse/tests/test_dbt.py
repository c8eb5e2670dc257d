"""The dbt package on DuckDB; more of it in `long`."""

from __future__ import annotations

import re
from pathlib import Path

from databases import ROOT, statement
from dbt_runs import DELIVERIES, check, halves, on_duckdb
from deliveries import winners


def test_model_is_right_and_the_popular_one_convicted(tmp_path: Path) -> None:
    dbt, land, rows = on_duckdb(tmp_path)
    check(dbt, land, rows, halves())
    assert len(rows("popular_effects")) > len(winners(DELIVERIES)), "doubled"


def test_order_and_columns_are_those_of_the_printed_sql() -> None:
    macros = (ROOT / "dbt/semel/macros/semel_order.sql").read_text(encoding="utf-8")
    said = {
        name: " ".join(body.split("{{-")[0].split()).replace(' collate "C"', "")
        for name, body in re.findall(r"macro (\w+)\(\) -%}(.*?){%- endmacro", macros, re.DOTALL)
    }
    printed = " ".join(statement("duckdb", "view").split())
    assert f"SELECT {said['semel_columns']} FROM" in printed
    for name in ("default__semel_order", "postgres__semel_order"):
        assert f"ORDER BY {said[name].replace(' desc', ' DESC')})" in printed
