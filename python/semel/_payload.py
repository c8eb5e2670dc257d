"""Arguments and results as JSON: what the core does not know itself, and the way back by annotation."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import functools
import json
import types
import typing
import uuid
from decimal import Decimal
from typing import Any, Callable, Optional, TypeGuard

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


def _members(value: object) -> Optional[dict[str, Any]]:
    """The fields of a dataclass, a pydantic model or an attrs class."""
    if isinstance(value, type):
        return None
    kind: Any = type(value)
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    elif hasattr(kind, "model_fields") and hasattr(value, "model_dump"):
        names = list(kind.model_fields)
    elif hasattr(kind, "__attrs_attrs__"):
        names = [field.name for field in kind.__attrs_attrs__]
    else:
        return None
    return {name: getattr(value, name) for name in names}


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


def refused(path: str, value: object) -> KeyRefused:
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return KeyRefused(
        f"{path or 'the value'} is of type {name}, which has no one JSON: pass a plain value (an id, a string, a list), "
        f"or give once(encode=...) a function that makes one; a retry of the same call fails again",
        "type",
    )


LEVELS_MAX = 128
"""How many arrays and objects may be in each other."""

LEVELS_OF_KEYS_MAX = 64
"""The same where a pointer has to be followed: the readers of keys in other languages go no deeper."""


def encode(value: Any, hook: Optional[Encode] = None, levels_max: int = LEVELS_MAX) -> bytes:
    """Canonical JSON. ``hook`` is asked first about what JSON does not know; it gives the value back unchanged to pass."""
    if hook is None:
        return _native.encode(value, simplify, levels_max)

    def hooked(value: Any, path: str) -> Any:
        simpler = hook(value)
        return simplify(value, path) if simpler is value else simpler

    return _native.encode(value, hooked, levels_max)


# === the way back ===


def decode(body: bytes, annotation: Any = Any) -> Any:
    """What was encoded, as its annotation says; plain JSON where there is none or it does not say how."""
    return _as(_read(body), annotation)


def _read(body: bytes) -> Any:
    return _from_json(body.decode())


_from_json = json.JSONDecoder().decode


def decoder(annotation: Any) -> Callable[[bytes], Any]:
    """The same for many values of one annotation."""
    return _read if _is_plain(annotation) else functools.partial(decode, annotation=annotation)


def _is_plain(kind: Any) -> bool:
    """Whether JSON as it is read is what an annotation says."""
    if kind in (Any, None, type(None), str, int, bool, list, dict):
        return True
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Union or origin is types.UnionType or origin in (list, dict):
        return all(map(_is_plain, arguments))
    return False


def _as(value: Any, kind: Any) -> Any:
    if value is None or kind is Any or kind is None:
        return value
    origin = typing.get_origin(kind)
    if origin is not None:
        return _as_generic(value, kind, origin)
    if not _is_class(kind):
        return value
    if issubclass(kind, enum.Enum):
        return kind(value)
    if _is_text(value):
        return _READERS[kind](value) if kind in _READERS else value
    if kind is float and type(value) is int:
        return float(value)
    if _is_object(value):
        return value if kind is dict else _as_object(value, kind)
    if kind is tuple:
        return tuple(value) if _is_array(value) else value
    return kind(*value) if _is_array(value) and _is_tuple(kind) else value


def _is_tuple(kind: type[Any]) -> bool:
    return issubclass(kind, tuple)


# An isinstance() would leave the checkers with a list of they do not know what.


def _is_class(kind: Any) -> TypeGuard[type[Any]]:
    return isinstance(kind, type)


def _is_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str)


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_array(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


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
    if origin is typing.Union or origin is types.UnionType:
        return _as_union(value, arguments)
    if origin is typing.Annotated:
        return _as(value, arguments[0])
    if origin is tuple and _is_array(value):
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return tuple(_as(item, arguments[0]) for item in value)
        return tuple(_as(item, one) for item, one in zip(value, arguments))
    if _is_class(origin) and issubclass(origin, dict) and _is_object(value):
        return {name: _as(item, arguments[1]) for name, item in value.items()}
    if _is_array(value) and arguments:
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


def _as_object(value: dict[str, Any], kind: Any) -> Any:
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    if hasattr(kind, "__dataclass_fields__"):
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
