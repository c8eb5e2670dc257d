"""Two merges at once."""

from __future__ import annotations

import threading
from typing import Callable

import duckdb
import psycopg
import pytest

from databases import DuckDb, Postgres
from deliveries import traffic, winners

DELIVERIES = traffic(200)
ON = "ON t.event_id = s.event_id WHEN NOT MATCHED THEN INSERT VALUES (s.event_id, s.payload)"


@pytest.fixture
def postgres() -> Postgres:
    database = Postgres()
    database.part("ddl")
    database.land(DELIVERIES)
    return database


def together(*works: Callable[[], object]) -> list[Exception]:
    """Runs them at once; what they raised."""
    raised: list[Exception] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        start.wait()
        try:
            work()
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_printed_merge_is_right_beside_itself(postgres: Postgres) -> None:
    others = [Postgres(postgres.url) for _ in range(2)]
    for _ in range(10):
        postgres.empty("effects")
        assert together(*(other.merge for other in others)) == []
        assert postgres.effects() == winners(DELIVERIES)


def test_second_merge_waits_for_the_first_and_compares_with_it(postgres: Postgres) -> None:
    """The first has merged only later deliveries, and has not committed when the second begins."""
    middle = sorted(one.received_at for one in DELIVERIES)[len(DELIVERIES) // 2]
    second = Postgres(postgres.url)
    postgres.run("BEGIN")
    postgres.merge(since=middle)
    merging = threading.Thread(target=second.merge)
    merging.start()
    watcher = Postgres(postgres.url)
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    while merging.is_alive() and watcher.run(waiting) == [(0,)]:
        pass
    assert merging.is_alive(), "it must wait for the rows of the first"
    postgres.run("COMMIT")
    merging.join()
    assert postgres.effects() == winners(DELIVERIES)


@pytest.mark.parametrize("form", ["merge", "not exists", "delete and insert"])
def test_without_a_key_everything_is_doubled_in_silence(postgres: Postgres, form: str) -> None:
    postgres.run("CREATE TABLE sink (event_id text, payload text)")
    source = "SELECT DISTINCT ON (event_id) event_id, payload FROM landing"
    sql = {
        "merge": f"MERGE INTO sink t USING ({source}) s {ON}",
        "not exists": f"INSERT INTO sink {source} WHERE NOT EXISTS (SELECT FROM sink t WHERE t.event_id = landing.event_id)",
        "delete and insert": f"DELETE FROM sink WHERE event_id IN (SELECT event_id FROM landing); INSERT INTO sink {source}",
    }[form]
    second = Postgres(postgres.url)
    for each in (postgres, second):
        each.run("BEGIN")
    for each in (postgres, second):
        each.run(sql)
    for each in (postgres, second):
        each.run("COMMIT")
    assert postgres.doubled("sink") == len(winners(DELIVERIES))


def test_merge_with_a_key_fails_instead(postgres: Postgres) -> None:
    postgres.run("CREATE TABLE sink (event_id text PRIMARY KEY, payload text)")
    sql = f"MERGE INTO sink t USING (SELECT DISTINCT ON (event_id) event_id, payload FROM landing ORDER BY event_id) s {ON}"
    second = Postgres(postgres.url)
    for each in (postgres, second):
        each.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        each.run("SELECT count(*) FROM sink")
    postgres.run(sql)
    raised = together(lambda: second.run(sql), lambda: postgres.run("COMMIT"))
    assert [type(error) for error in raised] == [psycopg.errors.UniqueViolation]


def test_unsorted_upserts_deadlock(postgres: Postgres) -> None:
    """Why the printed merge sorts by event."""
    second = Postgres(postgres.url)
    upsert = "INSERT INTO sink VALUES (%s) ON CONFLICT (event_id) DO UPDATE SET event_id = excluded.event_id"
    postgres.run("CREATE TABLE sink (event_id text PRIMARY KEY)")
    for each, event in ((postgres, "a"), (second, "b")):
        each.run("BEGIN")
        each.run(upsert, [event])
    raised = together(lambda: postgres.run(upsert, ["b"]), lambda: second.run(upsert, ["a"]))
    assert [type(error) for error in raised] == [psycopg.errors.DeadlockDetected]


def test_duckdb_refuses_the_second() -> None:
    database = DuckDb()
    database.part("ddl")
    database.land(DELIVERIES)
    second = DuckDb(database.connection.cursor())
    for each in (database, second):
        each.run("BEGIN")
    for each in (database, second):
        each.merge()
    database.run("COMMIT")
    with pytest.raises(duckdb.TransactionException):
        second.run("COMMIT")
    assert database.effects() == winners(DELIVERIES)
