"""Arguments as payloads: equal for equal calls, refused where two readers could differ."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any, Optional, Union

import attrs
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semel
from semel import _native
from semel._payload import decode, encode

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "keys.json").read_text())["vectors"]


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Line:
    sku: str
    price: Decimal


@dataclasses.dataclass
class Order:
    id: str
    lines: list[Line]
    color: Color = Color.RED


class Parcel(pydantic.BaseModel):
    id: uuid.UUID
    sent: dt.datetime


@attrs.define
class Stock:
    item: str
    left: int


def terms(rule: list[str], route: str = "orders", namespace: str = "shop") -> _native.Terms:
    return _native.Terms(namespace, route, rule, lease=30, retention=3600, timeout=60, wait=1)


def _is_of_a_call(vector: dict[str, Any]) -> bool:
    """Calls have a payload, and neither headers nor a method nor a caller."""
    return "payload" in vector and not {"named", "method", "caller"} & vector.keys()


def _expected(vector: dict[str, Any]) -> str:
    """An empty part has an encoding, but names nothing, so no call may have one."""
    empty = any(part["text"] == "" for part in vector.get("parts", ()))
    return "empty" if empty else str(vector.get("error") or vector["key"])


@pytest.mark.parametrize("vector", [*filter(_is_of_a_call, VECTORS)], ids=lambda it: str(it["name"]))
def test_the_core_makes_the_keys_of_the_vectors(vector: dict[str, Any]) -> None:
    payload = vector["payload"].encode()
    try:
        key = terms(vector["rule"], vector["route"], vector["namespace"]).key(payload, payload)
    except semel.KeyRefused as refused:
        assert refused.code == _expected(vector)
    else:
        assert key == _expected(vector)
        assert _native.Terms.fingerprint(payload) == vector["fingerprint"]


def test_positional_keyword_and_default_are_one_call(shop: semel.Semel) -> None:
    @shop.once(name="f")
    def f(a: int, b: int = 2, *, c: str = "x") -> None: ...

    keys = {f.key(1), f.key(a=1), f.key(1, 2), f.key(1, b=2, c="x"), f.key(c="x", a=1.0)}
    assert len(keys) == 1
    assert f.key(1, 3) not in keys


def test_a_default_that_is_added_later_changes_no_call_made_before(shop: semel.Semel) -> None:
    @shop.once(name="f")
    def before(order: str) -> str:
        return "ran"

    @shop.once(name="f")
    def after(order: str, currency: str = "EUR") -> str:
        return "ran again"

    assert before("A-1") == "ran"
    assert after("A-1") == after("A-1", "EUR") == "ran"
    assert after.key("A-1", "USD") != after.key("A-1")


def test_a_pointer_reads_defaults_too(shop: semel.Semel) -> None:
    @shop.once(key=["/order/id", "kind"], name="f")
    def f(order: dict[str, Any], kind: str = "sale") -> None: ...

    assert f.key({"id": 7}) == f.key({"id": 7, "note": "x"}, "sale") != f.key({"id": 7}, "refund")


def test_lists_and_members_join_the_payload(shop: semel.Semel) -> None:
    @shop.once(name="f")
    def f(*items: int, **members: int) -> None: ...

    @shop.once(name="f")
    def g(items: tuple[int, ...], a: int) -> None: ...

    assert f.key(1, 2, a=3) == g.key((1, 2), 3)
    with pytest.raises(semel.KeyRefused, match="both a parameter and a member"):
        f.key(1, items=2)


def test_a_wrong_call_is_pythons_own_error(shop: semel.Semel) -> None:
    @shop.once(name="f")
    def f(a: int, b: int) -> None: ...

    for arguments, keywords in [((1,), {}), ((1, 2, 3), {}), ((1, 2), {"a": 1}), ((), {"x": 1})]:
        with pytest.raises(TypeError):
            f(*arguments, **keywords)

    @shop.once(name="g")
    def g(a: int, *, b: int) -> None: ...

    with pytest.raises(TypeError):
        g(1, 2)  # type: ignore[call-arg]


def test_values_have_one_spelling() -> None:
    moment = dt.datetime(2026, 3, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    value = {
        "decimal": Decimal("9.00"),
        "large": Decimal("1E+3"),
        "zero": Decimal("-0.0"),
        "aware": moment,
        "naive": dt.datetime(2026, 3, 1, 12, 0, 0, 5),
        "day": dt.date(2026, 3, 1),
        "time": dt.time(12, 30),
        "uuid": uuid.UUID(int=7),
        "color": Color.RED,
        "level": Level.HIGH,
        "tuple": (1, 2.0, True, None),
    }
    assert json.loads(encode(value)) == {
        "decimal": "9",
        "large": "1000",
        "zero": "0",
        "aware": "2026-03-01T10:00:00Z",
        "naive": "2026-03-01T12:00:00.000005",
        "day": "2026-03-01",
        "time": "12:30:00",
        "uuid": "00000000-0000-0000-0000-000000000007",
        "color": "red",
        "level": 3,
        "tuple": [1, 2, True, None],
    }
    assert encode({"b": 1, "a": [1.0, 1e300, -0.0], "\U0001f600": "", "\uffff": "\n"}) == (
        '{"a":[1,1e+300,0],"b":1,"\U0001f600":"","\uffff":"\\n"}'.encode()
    )


@pytest.mark.parametrize(
    ("value", "code", "words"),
    [
        ({1, 2}, "type", "order.lines.1 is of type set"),
        (b"x", "type", "bytes"),
        (dt.timedelta(1), "type", "datetime.timedelta"),
        (object(), "type", "order.lines.1 is of type object"),
        (Order, "type", "type"),
        (float("nan"), "not_finite", "order.lines.1 is NaN"),
        (float("-inf"), "not_finite", "-inf"),
        (Decimal("NaN"), "not_finite", "order.lines.1 is NaN"),
        (2**64, "wide_integer", "does not fit 64 bits"),
        (-(2**63) - 1, "wide_integer", "does not fit 64 bits"),
        ({1: 2}, "member_name", "has the member name 1"),
        ("\ud800", "lone_surrogate", "half a surrogate pair"),
        ({"\udfff": 1}, "lone_surrogate", "half a surrogate pair"),
    ],
)
def test_a_refusal_names_the_argument(shop: semel.Semel, value: Any, code: str, words: str) -> None:
    @shop.once
    def f(order: Any) -> None: ...

    with pytest.raises(semel.KeyRefused) as raised:
        f({"lines": [1, value]})
    assert raised.value.code == code
    assert words in str(raised.value) and "a retry of the same call fails again" in str(raised.value)


def test_a_value_that_contains_itself_is_refused(shop: semel.Semel) -> None:
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(semel.KeyRefused, match="contains itself"):
        encode(ring)


def test_encode_says_what_becomes_of_other_types(shop: semel.Semel) -> None:
    class Row:
        pk = 7

    @shop.once(name="f", encode=lambda value: value.pk if isinstance(value, Row) else value)
    def f(row: Any) -> Any:
        return row

    assert f.key(Row()) == f.key(7)
    with pytest.raises(semel.KeyRefused, match="row is of type set"):
        f.key({1})


def test_missing_and_empty_parts_are_refused(shop: semel.Semel) -> None:
    @shop.once(key="/order/id", name="f")
    def f(order: dict[str, Any]) -> None: ...

    for order, code in [({}, "missing_part"), ({"id": ""}, "empty")]:
        with pytest.raises(semel.KeyRefused) as raised:
            f(order)
        assert raised.value.code == code and "/order/id" in str(raised.value)


_plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(_plain)
def test_what_is_encoded_is_read_back(value: Any) -> None:
    assert _as_doubles(json.loads(encode(value))) == _as_doubles(value)


def _as_doubles(value: Any) -> Any:
    """RFC 8785 writes a double beyond 2^53 by its shortest digits, which as an integer are another number."""
    if isinstance(value, list):
        return [_as_doubles(item) for item in value]
    if isinstance(value, dict):
        return {name: _as_doubles(item) for name, item in value.items()}
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), _plain))
def test_the_core_reads_every_payload_that_it_writes_and_order_does_not_matter(value: dict[str, Any]) -> None:
    payload = encode(value)
    backwards = encode(dict(reversed(value.items())))
    assert payload == backwards
    spaced = json.dumps(value, indent=2).encode()
    assert _native.Terms.fingerprint(payload) == _native.Terms.fingerprint(spaced)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (Order("A", [Line("x", Decimal("1.50"))]), Order),
        ([Line("x", Decimal("2"))], list[Line]),
        ({"a": Line("x", Decimal("2"))}, dict[str, Line]),
        (Parcel(id=uuid.UUID(int=3), sent=dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)), Parcel),
        (Stock("lamp", 3), Stock),
        (Decimal("1.25"), Decimal),
        (uuid.UUID(int=9), uuid.UUID),
        (dt.datetime(2026, 1, 1, 12, 30, tzinfo=dt.timezone.utc), dt.datetime),
        (dt.datetime(2026, 1, 1, 12, 30), dt.datetime),
        (dt.date(2026, 1, 1), dt.date),
        (dt.time(1, 2, 3), dt.time),
        (Color.RED, Color),
        ((1, "a", Decimal("2")), tuple[int, str, Decimal]),
        ((1, 2, 3), tuple[int, ...]),
        (None, Optional[Decimal]),
        (Decimal("3"), Optional[Decimal]),
        (Color.RED, Union[Color, int]),
        (5, Union[Color, int]),
        (2.0, float),
        ({"a": [1, None]}, Any),
    ],
)
def test_a_replay_equals_the_first_value(shop: semel.Semel, value: Any, annotation: Any) -> None:
    def f() -> Any:
        return value

    f.__annotations__["return"] = annotation
    once = shop.once(name="f")(f)
    assert once() == value
    replayed = once()
    assert replayed == value and type(replayed) is type(value)
    assert decode(encode(value), annotation) == value


def test_strict_gives_the_first_caller_what_a_replay_gives(shop: semel.Semel) -> None:
    @shop.once(strict=True)
    def f() -> list[int]:
        return (1, 2)  # type: ignore[return-value]

    assert f() == f() == [1, 2]


def test_a_default_is_what_it_was_when_the_function_was_made(shop: semel.Semel) -> None:
    runs = []

    @shop.once(name="f")
    def f(order: str, lines: list[int] = []) -> None:  # noqa: B006
        runs.append(order)
        lines.append(1)

    f("A-1")
    f("A-1", [])
    assert runs == ["A-1"]


def test_other_calls_are_other_work(shop: semel.Semel) -> None:
    class Secret(str):
        def __str__(self) -> str:
            return "***"

    @shop.once(name="f")
    def f(*args: Any, **members: Any) -> None: ...

    assert f.key(Secret("4111")) != f.key(Secret("5222"))
    with pytest.raises(semel.KeyRefused, match="both a parameter and a member"):
        f.key(args=[1, 2])
