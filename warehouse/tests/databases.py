"""PostgreSQL and DuckDB behind one face. They run the files of warehouse/sql, which `semel warehouse sql` prints."""

from __future__ import annotations

import itertools
import os
from dataclasses import astuple
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Iterable

import duckdb
import psycopg

from deliveries import COLUMNS, Delivery

ROOT = Path(__file__).parents[2]
KINDS = ["text"] * 4 + ["timestamptz"] * 2 + ["text", "bigint", "bigint", "text"]
ALWAYS = datetime(2000, 1, 1, tzinfo=timezone.utc)
_numbers = itertools.count()


def statement(dialect: str, name: str) -> str:
    return (ROOT / "warehouse/sql" / dialect / f"{name}.sql").read_text(encoding="utf-8")


class Database:
    """Both tables, and the statements over them."""

    dialect: str
    place: str

    def run(self, sql: str, values: Any = None) -> list[tuple]:
        raise NotImplementedError

    def merge(self, since: datetime = ALWAYS, name: str = "merge") -> None:
        raise NotImplementedError

    def part(self, name: str) -> list[tuple]:
        return self.run(statement(self.dialect, name))

    def land(self, deliveries: Iterable[Delivery]) -> None:
        """All in one statement, a list for each column."""
        columns = [list(column) for column in zip(*map(astuple, deliveries))]
        if columns:
            lists = ", ".join(f"unnest({self.place}::{kind}[])" for kind in KINDS)
            self.run(f"INSERT INTO landing ({', '.join(COLUMNS)}) SELECT {lists}", columns)

    def land_only(self, deliveries: Iterable[Delivery]) -> None:
        """A batch: the merge sees nothing else."""
        self.empty("landing")
        self.land(deliveries)

    def empty(self, *tables: str) -> None:
        for table in tables:
            self.run(f"DELETE FROM {table}")

    def effects(self, table: str = "effects") -> list[tuple]:
        return sorted(self.run(f"SELECT {', '.join(COLUMNS)} FROM {table}"))

    def doubled(self, table: str = "effects") -> int:
        """How many rows too many."""
        [(rows, events)] = self.run(f"SELECT count(*), count(DISTINCT event_id) FROM {table}")
        return rows - events


class Postgres(Database):
    dialect, place = "postgres", "%s"

    def __init__(self, url: str | None = None) -> None:
        self.url = url or fresh_postgres()
        self.connection = psycopg.connect(self.url, autocommit=True)
        self.run("SET timezone = 'UTC'")

    def run(self, sql: str, values: Any = None) -> list[tuple]:
        cursor = self.connection.execute(sql, values)
        return cursor.fetchall() if cursor.description else []

    def merge(self, since: datetime = ALWAYS, name: str = "merge") -> None:
        # As psql does it.
        self.run(statement(self.dialect, name).replace(":'since'", f"'{since.isoformat()}'"))

    def empty(self, *tables: str) -> None:
        self.run(f"TRUNCATE {', '.join(tables)}")


class DuckDb(Database):
    dialect, place = "duckdb", "?"

    def __init__(self, connection: duckdb.DuckDBPyConnection | None = None) -> None:
        self.connection = connection or duckdb.connect()
        self.run("SET timezone = 'UTC'")

    def run(self, sql: str, values: Any = None) -> list[tuple]:
        return self.connection.execute(sql, values).fetchall()

    def merge(self, since: datetime = ALWAYS, name: str = "merge") -> None:
        self.run(f"SET VARIABLE since = TIMESTAMPTZ '{since.isoformat()}'")
        self.run(statement(self.dialect, name))


def fresh_postgres() -> str:
    """A database of the test's own, that orders text as English does wherever a column does not say otherwise."""
    base = os.environ.get("SEMEL_TEST_POSTGRES_URL")
    assert base, "SEMEL_TEST_POSTGRES_URL is not set: run `cargo xtask test --only warehouse`, or start `cargo xtask servers`"
    name = f"warehouse_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(base, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C'")
    return base.rsplit("/", 1)[0] + "/" + name
