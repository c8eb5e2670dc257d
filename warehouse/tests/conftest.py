"""The databases of the tests: each test has its own."""

from __future__ import annotations

import pytest

from databases import Database, DuckDb, Postgres


@pytest.fixture(params=[Postgres, DuckDb], ids=["postgres", "duckdb"])
def database(request: pytest.FixtureRequest) -> Database:
    made: Database = request.param()
    made.part("ddl")
    return made


@pytest.fixture
def both() -> list[Database]:
    databases: list[Database] = [Postgres(), DuckDb()]
    for one in databases:
        one.part("ddl")
    return databases
