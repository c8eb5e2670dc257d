"""Merges batches into grown tables on DuckDB, over the whole table and within a horizon, in turns.

`merge.py DIRECTORY ROUNDS ROWS …` is a part of `cargo xtask bench landing`. The tables have ROWS rows, all the same number
per day. Prints a JSON object: the seconds of every round, by rows and form, as in `1000000 horizon`.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import duckdb

SQL = Path(__file__).parents[2] / "warehouse/sql/duckdb"
FORMS = {"whole": "merge.sql", "horizon": "merge.horizon.sql"}  # of seven days

ROWS_PER_DAY = 10_000
BATCH_ROWS, BATCH_REPEATS = 10_000, 1_000

# An event of each number, published at even intervals.
EVENTS = f"""
SELECT 'v1_' || sha256(n::VARCHAR), sha256('f' || n), n::VARCHAR, 'pubsub',
       TIMESTAMPTZ '2026-01-01 00:00:00+00' + to_microseconds(n * {86_400_000_000 // ROWS_PER_DAY}),
       TIMESTAMPTZ '2030-01-01 00:00:00+00', md5(n || '{{who}}'), 1, 0, repeat('x', 100)
  FROM range({{first}}, {{after}}) AS numbers (n)
"""


class Target:
    """A table of effects with so many rows, and batches for it."""

    def __init__(self, directory: Path, rows: int) -> None:
        self.db = duckdb.connect(directory / f"{rows}.duckdb")
        self.db.execute((SQL / "ddl.sql").read_text())
        self.rows = rows
        self.put("effects", 0, rows, "first")
        self.db.execute("SET VARIABLE since = TIMESTAMPTZ '2000-01-01 00:00:00+00'")

    def put(self, table: str, first: int, after: int, who: str) -> None:
        self.db.execute(f"INSERT INTO {table} {EVENTS.format(first=first, after=after, who=who)}")

    def merge(self, form: str) -> float:
        """Merges a batch of new events and of some that are there; how many seconds that took."""
        new = BATCH_ROWS - BATCH_REPEATS
        self.db.execute("TRUNCATE landing")
        self.put("landing", self.rows - BATCH_REPEATS, self.rows + new, "again")
        self.db.execute("CHECKPOINT")  # not in the middle of what is measured
        begun = time.perf_counter()
        self.db.execute((SQL / FORMS[form]).read_text())
        took = time.perf_counter() - begun
        self.rows += new
        found = self.db.execute("SELECT count(*), count(DISTINCT event_id) FROM effects").fetchone()
        assert found == (self.rows, self.rows), f"{found} instead of {self.rows}: {form}"
        return took


def main(directory: str, rounds: str, *sizes: str) -> None:
    targets = {size: Target(Path(directory), int(size)) for size in sizes}
    contenders = [(size, form) for size in sizes for form in FORMS]
    seconds: dict[str, list[float]] = {f"{size} {form}": [] for size, form in contenders}
    for size, form in contenders:  # warm-up
        targets[size].merge(form)
    for number in range(int(rounds)):
        print(f"  round {number + 1} of {rounds}", file=sys.stderr)
        first = number % len(contenders)
        for size, form in contenders[first:] + contenders[:first]:
            seconds[f"{size} {form}"].append(targets[size].merge(form))
    json.dump(seconds, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
