"""The integration project of the dbt package, run by dbt."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import duckdb

from databases import ROOT, DuckDb
from deliveries import Delivery, traffic, winners

DELIVERIES = traffic(400)
Land = Callable[[list[Delivery]], None]
Rows = Callable[[str], list[tuple]]

VERDICTS = {
    "semel_effects": "success",
    "semel_semel_unique_effect_semel_effects_": "pass",
    "semel_semel_winner_semel_effects_": "pass",
    "semel_source_semel_no_conflict_semel_landing_": "warn",
    "popular_effects": "success",
    "semel_semel_unique_effect_popular_effects_": "fail",
    "semel_semel_winner_popular_effects_": "fail",
}


class Dbt:
    """The project in a directory of its own."""

    def __init__(self, home: Path, target: str, environment: dict[str, str], python: str = sys.executable) -> None:
        self.home, self.target, self.python = home, target, python
        self.environment = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false", **environment}
        package = ROOT / "dbt/semel"
        shutil.copytree(package / "integration_tests", home, dirs_exist_ok=True)
        (home / "dbt_packages").mkdir()
        # What `dbt deps` makes of a local package.
        (home / "dbt_packages/semel").symlink_to(package)

    def __call__(self, *words: str, **variables: object) -> dict[str, str]:
        """The status of every model and test, by its name."""
        given = [*words, "--target", self.target, "--vars", json.dumps(variables), "--profiles-dir", "."]
        command = [self.python, "-c", "from dbt.cli.main import cli; cli()", *given]
        ran = subprocess.run(command, cwd=self.home, env=self.environment, capture_output=True, text=True)
        results = self.home / "target/run_results.json"
        assert results.exists(), ran.stdout + ran.stderr
        found = {one["unique_id"].split(".")[2]: one["status"] for one in json.loads(results.read_text())["results"]}
        results.unlink()
        assert "error" not in found.values(), ran.stdout
        return found


def check(dbt: Dbt, land: Land, rows: Rows, halves: list[list[Delivery]], **variables: object) -> None:
    """The model is right after each half; the popular one is convicted, though dbt calls its run a success."""
    land(halves[0])
    dbt("run", **variables)
    assert rows("semel_effects") == winners(halves[0])
    land(halves[1])
    found = dbt("build", **variables)
    assert found.items() >= VERDICTS.items(), found
    assert rows("semel_effects") == winners(DELIVERIES)


def halves() -> list[list[Delivery]]:
    """In the order of receipt; the second has repeats of the first."""
    middle = len(DELIVERIES) // 2
    return [DELIVERIES[:middle], DELIVERIES[middle:]]


def on_duckdb(home: Path) -> tuple[Dbt, Land, Rows]:
    """How to land there, and to look: dbt wants the file alone."""
    file = str(home / "semel.duckdb")

    def using(work: Callable[[DuckDb], Any]) -> Any:
        with duckdb.connect(file) as connection:
            return work(DuckDb(connection))

    using(lambda database: database.part("ddl"))
    dbt = Dbt(home, "duckdb", {"SEMEL_DBT_DUCKDB": file})
    return dbt, lambda batch: using(lambda it: it.land(batch)), lambda table: using(lambda it: it.effects(table))
