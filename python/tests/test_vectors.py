"""Calls of Python functions and Celery tasks have the keys that ``vectors/keys.json`` says, as in Rust and SQL, where the
same file is read."""

from __future__ import annotations

import dataclasses
import enum
import importlib.util
import json
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import attrs
import pydantic
import pytest
from celery import Celery
from hypothesis import given
from hypothesis import strategies as st

import semel
import semel.celery
from semel import _native
from semel._once import Calls

_VECTORS = Path(__file__).parents[2] / "vectors"
_BOOK = json.loads((_VECTORS / "keys.json").read_text())
CALLS = [vector for vector in _BOOK["vectors"] if "python" in vector]
REFUSED = _BOOK["refused_calls"]


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Strange(enum.Enum):
    SET = frozenset((1,))


class Name(str):
    def __str__(self) -> str:
        return "***"


class Point(NamedTuple):
    x: int
    y: int


@dataclasses.dataclass
class Line:
    sku: str
    price: Any


class Parcel(pydantic.BaseModel):
    id: UUID
    sent: date


@attrs.define
class Stock:
    item: str
    left: int


class Row:
    """Something of an object-relational mapper."""

    def __init__(self, pk: int) -> None:
        self.pk = pk


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def ring() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


_NAMES = {
    it.__name__: it
    for it in (
        Color, Level, Strange, Name, Point, Line, Parcel, Stock, Row, nested, ring,
        date, datetime, time, timedelta, timezone, Decimal, UUID,
    )
}  # fmt: skip


class Called:
    """A call that a vector writes down as Python."""

    def __init__(self, python: dict[str, str], namespace: str) -> None:
        qualname, parameters = python["def"].split("(", 1)
        module: dict[str, Any] = {**_NAMES, "__name__": python["module"]}
        exec(f"def made({parameters}: ...", module)
        function = module["made"]
        function.__name__, function.__qualname__ = qualname.rsplit(".", 1)[-1], qualname
        terms = eval(f"dict({python.get('once', python.get('task'))})", module)
        self.args, self.kwargs = eval(f"(lambda *args, **kwargs: (args, kwargs)){python['call']}", module)
        self.calls = (_task if "task" in python else _once)(semel.Semel("memory:", namespace=namespace), function, terms)

    def key(self) -> str:
        return self.calls.key(self.args, self.kwargs)

    def payloads(self) -> tuple[bytes, bytes]:
        return self.calls.payloads(self.args, self.kwargs)


def _once(shop: semel.Semel, function: Any, terms: dict[str, Any]) -> Calls:
    once: semel.Once[..., Any] = shop.once(**terms)(function)
    return once.calls


def _task(shop: semel.Semel, function: Any, options: dict[str, Any]) -> Calls:
    app = Celery("vectors", broker="memory://", task_cls="semel.celery:Task")
    semel.celery.setup(app, shop)
    task: Any = app.task(shared=False, **options)(function)
    calls = task.calls()
    assert isinstance(calls, Calls)
    return calls


@pytest.mark.parametrize("vector", [it for it in CALLS if "key" in it], ids=lambda it: str(it["name"]))
def test_a_call_has_the_payload_and_the_key_of_its_vector(vector: dict[str, Any]) -> None:
    called = Called(vector["python"], vector["namespace"])
    own = vector["python"].get("own", vector["payload"])
    assert called.calls.route == vector["route"]
    assert called.payloads() == (vector["payload"].encode(), own.encode())
    assert called.key() == vector["key"]
    assert (_native.Terms.fingerprint(own.encode()) == vector["fingerprint"]) is (own == vector["payload"])


@pytest.mark.parametrize("vector", [*(it for it in CALLS if "error" in it), *REFUSED], ids=lambda it: str(it["name"]))
def test_a_call_without_a_key_is_refused_in_the_words_of_its_vector(vector: dict[str, Any]) -> None:
    called = Called(vector["python"], "shop")
    with pytest.raises(semel.KeyRefused) as refused:
        called.key()
    assert refused.value.code == vector["error"]
    assert vector["python"]["names"] in str(refused.value)
    assert "fails again" in str(refused.value)


def _reference() -> Any:
    spec = importlib.util.spec_from_file_location("check", _VECTORS / "check.py")
    assert spec is not None and spec.loader is not None
    check = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check)
    return check


_CHECK = _reference()
_LITERALS = st.one_of(
    st.from_regex(r"-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,25})?([eE][-+]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r"-?[0-9]\.[0-9]{0,3}0{0,5}[0-9]{1,3}[eE][-+]?0{0,3}[0-9]{15,21}", fullmatch=True),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: f"{value:.17g}"),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)


@given(_LITERALS)
def test_numbers_are_read_as_the_reference_reads_them(literal: str) -> None:
    payload = f'{{"v":{literal}}}'.encode()
    vector = {"namespace": "shop", "route": "orders", "rule": ["/v"], "payload": payload.decode()}
    expected = _CHECK.compute(vector)
    terms = _native.Terms("shop", "orders", ["/v"], lease=30, retention=3600, timeout=60, wait=1)
    try:
        said = terms.key(payload, payload)
    except semel.KeyRefused as refused:
        said = refused.code
    assert said == expected.get("key", expected.get("error"))
    assert _native.Terms.fingerprint(payload) == _CHECK.fingerprint(payload)


def test_there_are_enough_calls_among_the_vectors() -> None:
    assert len(CALLS) >= 80 and len(REFUSED) >= 25
