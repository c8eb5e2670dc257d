"""Arguments and results as JSON: what the core does not know itself, and the way back by annotation."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
import types
import typing
import uuid
from decimal import Decimal
from typing import Any, Callable, Optional

from . import _native
from ._errors import KeyRefused

Encode = Callable[[Any], Any]


def simplify(value: Any, path: str) -> Any:
    """A value as something that JSON knows; refused when two readers could take it differently."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Decimal):
        return _decimal(value, path)
    if isinstance(value, dt.datetime):
        return _moment(value)
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    members = _members(value)
    if members is not None:
        return members
    # Subclasses of what JSON knows: a namedtuple, a str with a name.
    for kind, plain in _PLAIN.items():
        if isinstance(value, kind):
            return plain(value)
    raise refused(path, value)


# By the base class's own reading: a subclass may hide what it is (a secret that prints stars).
_PLAIN: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    list: list,
    tuple: tuple,
    dict: dict,
}


def _members(value: Any) -> Optional[dict[str, Any]]:
    """The fields of a dataclass, a pydantic model or an attrs class."""
    if isinstance(value, type):
        return None
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(type(value), "model_fields") and hasattr(value, "model_dump"):
        return {name: getattr(value, name) for name in type(value).model_fields}
    fields = getattr(type(value), "__attrs_attrs__", None)
    if fields is not None:
        return {field.name: getattr(value, field.name) for field in fields}
    return None


def _decimal(value: Decimal, path: str) -> str:
    """Plain notation without trailing zeros, so that 9.0 and 9.00 are one."""
    if not value.is_finite():
        raise KeyRefused(f"{path or 'the value'} is {value}, which has no JSON; a retry of the same call fails again",
                         "not_finite")
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _moment(value: dt.datetime) -> str:
    if value.tzinfo is None or value.utcoffset() is None:
        return value.isoformat()
    return value.astimezone(dt.timezone.utc).replace(tzinfo=None).isoformat() + "Z"


def refused(path: str, value: Any) -> KeyRefused:
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return KeyRefused(
        f"{path or 'the value'} is of type {name}, which has no one JSON: pass a plain value (an id, a string, a list), "
        f"or give once(encode=...) a function that makes one; a retry of the same call fails again",
        "type",
    )


def encode(value: Any, hook: Optional[Encode] = None) -> bytes:
    """Canonical JSON. ``hook`` is asked first about what JSON does not know; it gives the value back unchanged to pass."""
    if hook is None:
        return _native.encode(value, simplify)

    def hooked(value: Any, path: str) -> Any:
        simpler = hook(value)
        return simplify(value, path) if simpler is value else simpler

    return _native.encode(value, hooked)


# === the way back ===


def decode(body: bytes, annotation: Any = Any) -> Any:
    """What was encoded, as its annotation says; plain JSON where there is none or it does not say how."""
    return _as(json.loads(body), annotation)


def _as(value: Any, kind: Any) -> Any:
    if value is None or kind is Any or kind is None:
        return value
    origin = typing.get_origin(kind)
    if origin is not None:
        return _as_generic(value, kind, origin)
    if not isinstance(kind, type):
        return value
    if issubclass(kind, enum.Enum):
        return kind(value)
    if kind in _READERS and isinstance(value, str):
        return _READERS[kind](value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind in (tuple, bytes, list, dict, str, int, bool):
        return tuple(value) if kind is tuple else value
    if isinstance(value, dict):
        return _as_object(value, kind)
    return kind(*value) if issubclass(kind, tuple) and isinstance(value, list) else value


def _instant(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)


_READERS: dict[Any, Callable[[str], Any]] = {
    Decimal: Decimal,
    uuid.UUID: uuid.UUID,
    dt.datetime: _instant,
    dt.date: dt.date.fromisoformat,
    dt.time: dt.time.fromisoformat,
}


def _as_generic(value: Any, kind: Any, origin: Any) -> Any:
    arguments = typing.get_args(kind)
    if origin is typing.Union or origin is getattr(types, "UnionType", None):
        return _as_union(value, arguments)
    if origin is typing.Annotated:
        return _as(value, arguments[0])
    if origin is tuple and isinstance(value, list):
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_as(item, arguments[0]) for item in value)
        return tuple(_as(item, one) for item, one in zip(value, arguments))
    if isinstance(origin, type) and issubclass(origin, dict) and isinstance(value, dict):
        return {name: _as(item, arguments[1]) for name, item in value.items()}
    if isinstance(value, list) and arguments:
        return [_as(item, arguments[0]) for item in value]
    return value


def _as_union(value: Any, kinds: tuple[Any, ...]) -> Any:
    """The first kind that takes the value; what several take alike is the first one's."""
    for kind in kinds:
        if kind is type(None):
            continue
        try:
            made = _as(value, kind)
        except (TypeError, ValueError, KeyError, ArithmeticError):
            continue
        if not isinstance(kind, type) or isinstance(made, kind):
            return made
    return value


def _as_object(value: dict[str, Any], kind: type) -> Any:
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    if dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        fields = {field.name: field for field in dataclasses.fields(kind)}
        known = {name: _as(item, hints.get(name, Any)) for name, item in value.items() if name in fields and fields[name].init}
        return kind(**known)
    if hasattr(kind, "__attrs_attrs__"):
        hints = _hints(kind)
        return kind(**{name.lstrip("_"): _as(item, hints.get(name, Any)) for name, item in value.items()})
    return value


def _hints(kind: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind)
    except Exception:  # a name that is not there at run time: the annotation says nothing
        return {}


def return_annotation(function: Callable[..., Any]) -> Any:
    """What a function says it returns; ``Any`` when it does not say, or says it with names that cannot be found."""
    return _hints(function).get("return", Any)
