"""However deliveries are divided, ordered, overlapped and repeated, the merged table is the view is the oracle."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from databases import Database, DuckDb, Postgres
from deliveries import START, Delivery, traffic, winners, within

# Few values, so that ties and overtaking are common. é and Z tell orders by bytes from orders of a language.
INSTANTS = st.integers(0, 3).map(lambda hours: START + timedelta(hours=hours))
DELIVERY = st.builds(
    Delivery,
    event_id=st.sampled_from(["a", "Z", "é"]),
    fingerprint=st.sampled_from(["f", "G"]),
    message_id=st.sampled_from(["m", "N", "é"]),
    source=st.just("s"),
    published_at=INSTANTS,
    received_at=INSTANTS,
    delivery_id=st.just(""),
    attempt=st.sampled_from([None, 1]),
    version=st.sampled_from([0, 1, -(2**63), 2**63 - 1]),
    payload=st.just(""),
)


@st.composite
def histories(draw: st.DrawFn) -> list[list[Delivery]]:
    """Batches that have every delivery at least once."""
    found = draw(st.lists(DELIVERY, min_size=1, max_size=10))
    ids = draw(st.permutations([f"{n:02}" for n in range(len(found))]))
    all_of_them = [replace(one, delivery_id=its, payload=f"answer {its}") for one, its in zip(found, ids)]
    some = st.lists(st.sampled_from(all_of_them), max_size=8)
    batches = draw(st.lists(some, max_size=4))
    merged = {one.delivery_id for batch in batches for one in batch}
    rest = [one for one in all_of_them if one.delivery_id not in merged]
    return draw(st.permutations([*batches, rest]))


@pytest.fixture(scope="module")
def databases() -> list[Database]:
    made: list[Database] = [Postgres(), DuckDb()]
    for one in made:
        one.part("ddl")
        one.part("view")
    return made


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=histories())
def test_merged_is_view_is_oracle(databases: list[Database], history: list[list[Delivery]]) -> None:
    landed = [one for batch in history for one in batch]
    expected = winners(landed)
    for database in databases:
        database.empty("effects")
        for batch in history:
            database.land_only(batch)
            database.merge()
        database.land_only(landed)
        assert database.effects() == expected, database.dialect
        assert database.effects("effects_view") == expected, database.dialect


@pytest.mark.parametrize("name", ["merge", "merge.horizon"])
def test_batches_by_time_with_an_overlap(databases: list[Database], name: str) -> None:
    """Rows commit in another order than they are stamped in, by less than the overlap; some batches are repeated. The
    merge that is bounded by a horizon holds while nothing is published again later than that."""
    deliveries = traffic(600)
    if name == "merge.horizon":
        deliveries = within(deliveries, timedelta(days=7))
    overlap, step = timedelta(minutes=15), timedelta(days=2)
    dice = random.Random(7)
    committed = {one.delivery_id: one.received_at + timedelta(seconds=dice.randrange(600)) for one in deliveries}
    for database in databases:
        database.empty("landing", "effects")
        for day in range(13):
            now = START + (day + 1) * step
            database.land([one for one in deliveries if now - step <= committed[one.delivery_id] < now])
            for _ in range(dice.choice([1, 1, 2])):
                database.merge(now - step - overlap, name)
        database.part("view")
        assert database.effects() == winners(deliveries), database.dialect
        assert database.effects("effects_view") == winners(deliveries), database.dialect
