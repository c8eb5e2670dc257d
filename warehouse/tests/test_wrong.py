"""The popular forms are wrong, each in its own way: if one of these tests fails, a database has changed its mind."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from databases import Database, Postgres
from deliveries import COLUMNS, START, Delivery, traffic, winners

DELIVERIES = traffic(1500)
WINNERS = winners(DELIVERIES)
ALL = ", ".join(COLUMNS)
RAW = f"SELECT {ALL} FROM landing"
FIRST_OF_BATCH = (
    f"SELECT {ALL} FROM (SELECT *, row_number() OVER (PARTITION BY event_id ORDER BY version DESC, published_at,"
    " message_id, fingerprint, received_at, delivery_id) AS nth FROM landing) AS l WHERE nth = 1"
)
UPDATE = "UPDATE SET " + ", ".join(f"{name} = s.{name}" for name in COLUMNS if name != "event_id")
INSERT = f"INSERT ({ALL}) VALUES ({', '.join('s.' + name for name in COLUMNS)})"


@pytest.fixture
def keyless(database: Database) -> Database:
    """As most warehouses are: nothing is enforced."""
    database.run(f"CREATE TABLE sink AS SELECT {ALL} FROM landing")
    return database


def wrong(rows: list[tuple]) -> int:
    return len(set(rows) ^ set(WINNERS))


def merge(source: str, match: str = "t.event_id = s.event_id", matched: str = UPDATE) -> str:
    when = f"WHEN MATCHED THEN {matched} " if matched else ""
    return f"MERGE INTO sink AS t USING ({source}) AS s ON {match} {when}WHEN NOT MATCHED THEN {INSERT}"


def batches(size: int = 300) -> list[list[Delivery]]:
    return [DELIVERIES[start : start + size] for start in range(0, len(DELIVERIES), size)]


# === views ===


@pytest.mark.parametrize("columns", ["*", "event_id, payload"])
def test_distinct_keeps_repeats(database: Database, columns: str) -> None:
    database.land(DELIVERIES)
    assert len(database.run(f"SELECT DISTINCT {columns} FROM landing")) > len(WINNERS)


@pytest.mark.parametrize("order", ["received_at DESC", "received_at ASC"])
def test_order_of_receipt_is_not_the_order(database: Database, order: str) -> None:
    database.land(DELIVERIES)
    rows = database.run(
        f"SELECT {ALL} FROM (SELECT *, row_number() OVER (PARTITION BY event_id ORDER BY {order}) AS nth FROM landing)"
        " AS l WHERE nth = 1"
    )
    assert len(rows) == len(WINNERS)
    assert wrong(rows) > 0


@pytest.mark.parametrize("order", ["ORDER BY published_at", "ORDER BY version DESC, published_at", ""])
def test_order_with_ties_changes_with_the_table(database: Database, order: str) -> None:
    picked = []
    for deliveries in (DELIVERIES, DELIVERIES[::-1]):
        database.land_only(deliveries)
        picked.append(
            set(
                database.run(
                    f"SELECT event_id, delivery_id FROM (SELECT *, row_number() OVER (PARTITION BY event_id {order}) AS nth"
                    " FROM landing) AS l WHERE nth = 1"
                )
            )
        )
    assert picked[0] != picked[1]


def test_any_value_changes_with_the_table(database: Database) -> None:
    # PostgreSQL 15 has no any_value; this is how people write it there.
    any_value = "(array_agg(payload))[1]" if isinstance(database, Postgres) else "any_value(payload)"
    picked = []
    for deliveries in (DELIVERIES, DELIVERIES[::-1]):
        database.land_only(deliveries)
        picked.append(set(database.run(f"SELECT event_id, {any_value} FROM landing GROUP BY event_id")))
    assert picked[0] != picked[1]


def test_right_order_survives_a_reordered_table_with_different_answers(database: Database) -> None:
    """One message, run twice by a model: equal in all but the arrival and the answer."""
    database.part("view")
    one = DELIVERIES[0]
    ties = [replace(one, delivery_id=f"{n:02}", payload=f"answer {n}") for n in range(20)]
    random.Random(3).shuffle(ties)
    for deliveries in (ties, ties[::-1]):
        database.land_only(deliveries)
        assert database.effects("effects_view") == winners(ties)


# === merges ===


def test_merge_of_raw_rows_doubles_and_then_fails(keyless: Database) -> None:
    keyless.land(DELIVERIES)
    keyless.run(merge(RAW))
    assert keyless.doubled("sink") == len(DELIVERIES) - len(WINNERS), "no error, every repeat is inserted"
    if isinstance(keyless, Postgres):
        with pytest.raises(psycopg.errors.CardinalityViolation):
            keyless.run(merge(RAW))
    else:
        with pytest.raises(Exception, match="(?i)multiple|more than one|twice"):
            keyless.run(merge(RAW))


def test_upsert_of_raw_rows(database: Database) -> None:
    database.land(DELIVERIES)
    upsert = f"INSERT INTO effects {RAW} ON CONFLICT (event_id) DO {UPDATE.replace('s.', 'excluded.')}"
    if isinstance(database, Postgres):
        with pytest.raises(psycopg.errors.CardinalityViolation):
            database.run(upsert)
    else:
        database.run(upsert)
        assert wrong(database.effects()) > 0, "in silence"


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5, 6], [3, 0, 5, 1, 6, 4, 2]], ids=["in order", "shuffled"])
def test_newest_batch_is_not_the_winner(keyless: Database, order: list[int]) -> None:
    portions = batches()
    assert len(portions) == len(order)
    for batch in (portions[n] for n in order):
        keyless.land_only(batch)
        keyless.run(merge(FIRST_OF_BATCH))
    assert keyless.doubled("sink") == 0
    assert wrong(keyless.effects("sink")) > 0


def test_insert_only_is_right_by_luck(keyless: Database) -> None:
    for batch in reversed(batches()):
        keyless.land_only(batch)
        keyless.run(merge(FIRST_OF_BATCH, matched=""))
    assert keyless.doubled("sink") == 0
    assert wrong(keyless.effects("sink")) > 0


WINDOWS = [(1, True), (3, True), (7, True), (20, False)]


@pytest.mark.parametrize(("days", "doubles"), WINDOWS)
def test_target_window_shorter_than_the_horizon_doubles(keyless: Database, days: int, doubles: bool) -> None:
    window = f"t.event_id = s.event_id AND t.published_at >= s.published_at - INTERVAL '{days} days'"
    for batch in batches():
        keyless.land_only(batch)
        keyless.run(merge(FIRST_OF_BATCH, window))
    assert (keyless.doubled("sink") > 0) == doubles


@pytest.mark.parametrize("dates", ["of the row", "of the batch"])
def test_only_these_dates_doubles(keyless: Database, dates: str) -> None:
    for batch in batches():
        keyless.land_only(batch)
        listed = ", ".join(f"DATE '{date}'" for date in {one.published_at.date() for one in batch})
        date = "CAST(s.published_at AS date)" if dates == "of the row" else listed
        keyless.run(merge(FIRST_OF_BATCH, f"t.event_id = s.event_id AND CAST(t.published_at AS date) IN ({date})"))
    assert keyless.doubled("sink") > 0


def test_window_from_now_or_the_newest_row_doubles_after_a_pause(keyless: Database) -> None:
    """A batch that spans days: its oldest rows are older than the window of its newest."""
    event = replace(DELIVERIES[0], published_at=START, message_id="a")
    again = replace(event, message_id="b", published_at=START + timedelta(hours=1), delivery_id="again")
    newest = replace(DELIVERIES[1], published_at=START + timedelta(days=9), received_at=START + timedelta(days=9))
    keyless.land_only([event])
    keyless.run(merge(FIRST_OF_BATCH))
    keyless.land_only([again, newest])
    end = (START + timedelta(days=9)).isoformat()
    window = f"t.event_id = s.event_id AND t.published_at >= TIMESTAMP WITH TIME ZONE '{end}' - INTERVAL '7 days'"
    keyless.run(merge(FIRST_OF_BATCH, window))
    assert keyless.doubled("sink") == 1


# === watermarks ===


@pytest.mark.parametrize(("overlap", "lost"), [(timedelta(0), 1), (timedelta(minutes=1), 0)])
def test_strict_watermark_loses_rows_that_commit_late(overlap: timedelta, lost: int) -> None:
    """Two writers: the one that was stamped first commits last, after a merge."""
    database = Postgres()
    database.part("ddl")
    late = Postgres(database.url)
    early = replace(DELIVERIES[0], event_id="early", received_at=START)
    later = replace(DELIVERIES[0], event_id="later", received_at=START + timedelta(seconds=30))
    late.run("BEGIN")
    late.land([early])
    database.land([later])
    database.merge()
    [(seen,)] = database.run("SELECT max(received_at) FROM effects")
    late.run("COMMIT")
    # `received_at > seen`, as watermarks are written, is `>=` the next instant.
    database.merge(seen - overlap + timedelta(microseconds=1))
    assert 2 - len(database.effects()) == lost
