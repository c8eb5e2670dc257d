"""Deliveries, as they land; and who wins among them."""

from __future__ import annotations

import random
from dataclasses import astuple, dataclass, fields, replace
from datetime import datetime, timedelta, timezone
from typing import Iterable

START = datetime(2026, 3, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Delivery:
    """One arrival; the fields are the columns of landing."""

    event_id: str
    fingerprint: str
    message_id: str
    source: str
    published_at: datetime
    received_at: datetime
    delivery_id: str
    attempt: int | None
    version: int
    payload: str


COLUMNS = [field.name for field in fields(Delivery)]


def winners(deliveries: Iterable[Delivery]) -> list[tuple]:
    """The oracle: per event the least by this order, as rows sorted by event."""
    first: dict[str, Delivery] = {}
    for one in deliveries:
        held = first.get(one.event_id)
        if held is None or _order(one) < _order(held):
            first[one.event_id] = one
    return sorted(astuple(one) for one in first.values())


def _order(one: Delivery) -> tuple:
    return (
        -one.version,
        one.published_at,
        one.message_id.encode(),
        one.fingerprint.encode(),
        one.received_at,
        one.delivery_id.encode(),
    )


def traffic(events: int, seed: int = 1) -> list[Delivery]:
    """What a broker delivers in twenty days, in the order of receipt: redelivered, published again up to nine days
    later, re-used identities, versions that overtake each other. No two answers are the same."""
    dice = random.Random(seed)
    out: list[Delivery] = []

    def arrive(one: Delivery, later: timedelta) -> Delivery:
        number = dice.getrandbits(64)
        return replace(
            one,
            received_at=one.published_at + later,
            delivery_id=f"{number:016x}",
            attempt=dice.choice([None, 1, 2]),
            payload=f'{{"order": {{"version": {one.version}}}, "answer": {number}}}',
        )

    for number in range(events):
        published = START + timedelta(seconds=dice.randrange(11 * 86400))
        event = f"v1_{number:06d}"
        print_of = lambda version, input="a": f"{event}-{version}-{input}"  # noqa: E731
        one = Delivery(event, print_of(1), f"m{dice.getrandbits(48)}", "orders", published, published, "", None, 1, "")
        if dice.random() < 0.03:  # version 2 is published first
            newer = replace(one, version=2, fingerprint=print_of(2), message_id=f"m{dice.getrandbits(48)}")
            out.append(arrive(newer, _short(dice)))
            one = replace(one, published_at=published + timedelta(seconds=dice.randrange(1, 3600)))
        out.append(arrive(one, _short(dice)))
        if dice.random() < 0.15:  # redelivered
            out.append(arrive(one, timedelta(seconds=dice.randrange(10, 7200))))
        if dice.random() < 0.10:  # published again, under another message
            late = timedelta(seconds=dice.randrange(0, 9 * 86400))
            again = replace(one, published_at=one.published_at + late, message_id=f"m{dice.getrandbits(48)}")
            out.append(arrive(again, _short(dice)))
        if dice.random() < 0.02:  # the same instant, another input: a re-used identity
            other = replace(one, fingerprint=print_of(1, "b"), message_id=f"m{dice.getrandbits(48)}")
            out.append(arrive(other, _short(dice)))
    return sorted(out, key=lambda one: (one.received_at, one.delivery_id))


def within(deliveries: list[Delivery], horizon: timedelta) -> list[Delivery]:
    """Without those that are published again later than that."""
    first: dict[str, datetime] = {}
    for one in deliveries:
        first[one.event_id] = min(one.published_at, first.get(one.event_id, one.published_at))
    return [one for one in deliveries if one.published_at - first[one.event_id] <= horizon]


def _short(dice: random.Random) -> timedelta:
    """Mostly quick, now and then overtaken by others."""
    return timedelta(milliseconds=dice.choice([20, 50, 200, 5000, 600_000]) + dice.randrange(20))
