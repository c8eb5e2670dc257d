"""The parts of `semel warehouse sql` that are not merges; and BigQuery's text, as far as it can be tried without BigQuery."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
import sqlglot

from databases import ALWAYS, ROOT, Database, DuckDb, statement
from deliveries import START, Delivery, traffic, winners, within

ONE = Delivery("e", "f", "m", "orders", START, START, "d", 1, 0, "{}")


def test_conflicts_are_inputs_that_differ_under_one_version(both: list[Database]) -> None:
    answers = [replace(ONE, event_id="answers", delivery_id=its, payload=its) for its in ("1", "2")]
    versions = [replace(ONE, event_id="versions", fingerprint=f"f{n}", delivery_id=f"{n}", version=n) for n in (1, 2)]
    inputs = [replace(ONE, event_id="inputs", fingerprint=f"f{n}", delivery_id=f"{n}") for n in (1, 1, 2)]
    for database in both:
        database.land([*answers, *versions, *inputs])
        assert database.part("conflicts") == [("inputs", 0, 2, 3, START, START)], database.dialect


def test_report_counts_every_delivery_once(both: list[Database]) -> None:
    deliveries = traffic(300)
    reports = []
    for database in both:
        database.land(deliveries)
        reports.append(database.part("report.horizon"))
        for source, day, total, events, redelivered, republished, *_ in reports[-1]:
            assert total == events + redelivered + republished, (source, day)
    assert reports[0] == reports[1]
    sums = [sum(row[column] for row in reports[0]) for column in (2, 3)]
    assert sums == [len(deliveries), 300]
    assert not all(row[-1] for row in reports[0]), "some are published again after more than seven days"


def test_report_counts_what_was_loaded_twice_once(both: list[Database]) -> None:
    deliveries = traffic(100)
    for database in both:
        database.land(deliveries)
        once = database.part("report")
        database.land([*deliveries, *deliveries, *deliveries])
        assert database.part("report") == once, database.dialect


def test_report_tells_redelivered_from_republished(both: list[Database]) -> None:
    hour = timedelta(hours=1)
    again = replace(ONE, delivery_id="2", received_at=START + hour)
    other = replace(ONE, delivery_id="3", message_id="n", published_at=START + 2 * hour, received_at=START + 3 * hour)
    for database in both:
        database.land([ONE, again, other])
        [row] = database.part("report")
        assert row == ("orders", START.date(), 3, 1, 1, 1, 3_600_000, 3_600_000, 7_200_000), database.dialect


VERSIONS = [
    ('{"order": {"version": 7}}', 7),
    ('{"order": {"version": "8"}}', 8),
    ('{"order": {"version": -9223372036854775808}}', -(2**63)),
    ('{"order": {"version": 9223372036854775808}}', 0),
    ('{"order": {"version": 1.5}}', 0),
    ('{"order": {"version": "1.5"}}', 0),
    ('{"order": {"version": true}}', 0),
    ('{"order": {"version": null}}', 0),
    ('{"order": {"version": {"a": 1}}}', 0),
    ('{"order": [1]}', 0),
    ("[" * 20_000, 0),
    ("{}", 0),
    ("not JSON", 0),
    ("", 0),
]


def test_version_is_read_from_the_payload(both: list[Database]) -> None:
    deliveries = [replace(ONE, event_id=f"{n:02}", payload=payload) for n, (payload, _) in enumerate(VERSIONS)]
    for database in both:
        database.part("ddl.version")
        database.part("view.version")
        database.land(deliveries)
        database.merge(name="merge.version")
        expected = [replace(one, version=version) for one, (_, version) in zip(deliveries, VERSIONS)]
        assert database.effects() == winners(expected), database.dialect
        assert database.effects("effects_view") == winners(expected), database.dialect


def test_version_from_the_payload_decides(database: Database) -> None:
    database.part("ddl.version")
    old = replace(ONE, payload='{"order": {"version": 1}}', delivery_id="1")
    new = replace(ONE, payload='{"order": {"version": 2}}', delivery_id="2", published_at=START + timedelta(hours=1))
    for batch in ([new], [old]):
        database.land_only(batch)
        database.merge(name="merge.version")
    assert database.effects() == [tuple(winners([replace(new, version=2)])[0])]
    database.land([new])
    assert database.part("conflicts.version") == []


def test_answer_goes_with_its_delivery(database: Database) -> None:
    """Of two answers to one message the first delivery's stands, whichever is merged first."""
    database.run("DROP TABLE landing; DROP TABLE effects")
    database.part("ddl.answer")
    database.run("ALTER TABLE landing ALTER answer_status SET DEFAULT 200; ALTER TABLE landing ALTER answer SET DEFAULT ''")
    second = replace(ONE, delivery_id="e", received_at=START + timedelta(seconds=1))
    for one, answer in ((second, "again"), (ONE, "first"), (second, "again")):
        database.land_only([one])
        database.run(f"UPDATE landing SET answer = '{answer}', answer_status = 201")
        database.merge(name="merge.answer")
    assert database.run("SELECT delivery_id, answer_status, answer FROM effects") == [("d", 201, "first")]


def test_duckdb_merge_asks_for_since() -> None:
    database = DuckDb()
    database.part("ddl")
    database.land([ONE])
    with pytest.raises(Exception, match="SET VARIABLE since"):
        database.part("merge")
    assert database.effects() == []


# === BigQuery ===

BIGQUERY = sorted(path.stem for path in (ROOT / "warehouse/sql/bigquery").glob("*.sql"))


@pytest.mark.parametrize("name", BIGQUERY)
def test_bigquery_text_can_be_parsed(name: str) -> None:
    """No proof: this parser accepts more than BigQuery does."""
    for parsed in sqlglot.parse(statement("bigquery", name), dialect="bigquery"):
        assert parsed is not None and not isinstance(parsed, sqlglot.exp.Command), parsed


def test_bigquery_statements_mean_the_same() -> None:
    """Translated, they give DuckDB's own result: their logic is right, their syntax is BigQuery's to judge."""
    deliveries = within(traffic(300), timedelta(days=7))
    here = DuckDb()
    here.run("CREATE SCHEMA semel; USE semel")
    here.part("ddl")
    for batch in (deliveries[1::2], deliveries[::3], deliveries[::2]):
        here.land_only(batch)
        here.run(f"SET VARIABLE since = TIMESTAMPTZ '{ALWAYS.isoformat()}'")
        here.run(_translated("merge"))
    here.land_only(deliveries)
    assert here.effects() == winners(deliveries)
    here.run(_translated("view"))
    assert here.effects("effects_view") == winners(deliveries)
    assert here.run(_translated("conflicts")) == here.part("conflicts")


def _translated(name: str) -> str:
    text = statement("bigquery", name).replace("@since", "getvariable('since')")
    return ";".join(sqlglot.transpile(text, read="bigquery", write="duckdb"))
