"""Binding: which arguments a call has, by name. The work is done once per function, when it is decorated."""

from __future__ import annotations

import inspect
import json
from typing import Any, Callable, Optional

from ._errors import ConfigError, KeyRefused
from ._payload import LEVELS_MAX, LEVELS_OF_KEYS_MAX, Encode, encode

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Binder:
    """Makes the payload of a call: its arguments by name. ``where`` names the function in messages."""

    def __init__(self, function: Callable[..., Any], key: Any, where: str, hook: Optional[Encode] = None) -> None:
        self._signature = inspect.signature(function)
        self._hook = hook
        self._levels_max = LEVELS_MAX if key is None else LEVELS_OF_KEYS_MAX
        parameters = self._signature.parameters.values()
        self._names = tuple(it.name for it in parameters if it.kind in _POSITIONAL)
        self._known = frozenset(it.name for it in parameters)
        self._defaults = {it.name: it.default for it in parameters if it.default is not it.empty}
        # As they are now: a mutable default may change with the first call.
        self._default_payloads = {name: self._encoded(default) for name, default in self._defaults.items()}
        self._required = frozenset(
            it.name for it in parameters if it.default is it.empty and it.kind not in (it.VAR_POSITIONAL, it.VAR_KEYWORD)
        )
        self._list = next((it.name for it in parameters if it.kind is it.VAR_POSITIONAL), None)
        self._members = next((it.name for it in parameters if it.kind is it.VAR_KEYWORD), None)
        # Then every keyword is the name of a parameter, and every argument has one.
        self._plain = self._list is None and self._members is None and not any(
            it.kind is it.POSITIONAL_ONLY for it in parameters
        )
        # How many arguments by position are all of them.
        self._by_position = len(self._names) if self._plain and len(self._names) == len(self._known) else None
        self.rule = self._rule(key, where)
        """The parts of the key: ``body``, or JSON pointers that begin with a parameter's name."""
        self._needed = self._defaults_in(self.rule)

    def _rule(self, key: Any, where: str) -> list[str]:
        if key is None:
            return ["body"]
        parts = [key] if isinstance(key, str) else list(key)
        if not parts:
            raise ConfigError(f"{where}: key=[] names nothing, so all calls would be one: name a parameter")
        return [self._part(part, where) for part in parts]

    def _part(self, part: Any, where: str) -> str:
        if not isinstance(part, str):
            raise ConfigError(f"{where}: key part {part!r} is not a text: write a parameter's name or a JSON pointer")
        pointer = part if part.startswith("/") else f"/{part}"
        name = _parameter(pointer).replace("~1", "/").replace("~0", "~")
        if name not in self._known and self._members is None:
            names = ", ".join(self._signature.parameters) or "none"
            raise ConfigError(f"{where}: key part {part!r} names no parameter; there are: {names}")
        return pointer

    def _defaults_in(self, rule: list[str]) -> tuple[str, ...]:
        """The parameters with a default that a rule reads."""
        names = {_parameter(part) for part in rule if part != "body"}
        return tuple(sorted(names & self._defaults.keys()))

    def payloads(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[bytes, bytes]:
        """What the rule reads, and the arguments that differ from their default: these make body and fingerprint."""
        own = self._own(args, kwargs)
        trimmed = encode(own, self._hook, self._levels_max)
        missing = {name: self._default(name) for name in self._needed if name not in own}
        if not missing:
            return trimmed, trimmed
        return encode({**own, **missing}, self._hook, self._levels_max), trimmed

    def _own(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        given = self._given(args, kwargs)
        if not self._defaults:
            return given
        for name in given.keys() & self._defaults.keys():
            if self._is_default(name, given[name]):
                del given[name]
        return given

    def _given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if len(args) == self._by_position and not kwargs:
            return dict(zip(self._names, args))
        if self._plain and len(args) <= len(self._names):
            bound = dict(zip(self._names, args))
            if kwargs.keys() <= self._known and not (kwargs.keys() & bound.keys()):
                bound.update(kwargs)
                if self._required <= bound.keys():
                    return bound
        given: dict[str, Any] = dict(self._signature.bind(*args, **kwargs).arguments)
        members: dict[str, Any] = given.pop(self._members, {}) if self._members else {}
        for name, value in members.items():
            if name in given or name in self._known:
                raise KeyRefused(
                    f"{name} is both a parameter and a member of **{self._members}, so a payload cannot tell them apart: "
                    f"rename one; a retry of the same call fails again",
                    "duplicate_member",
                )
            given[name] = value
        return given

    def _default(self, name: str) -> Any:
        payload = self._default_payloads[name]
        return self._defaults[name] if payload is None else json.loads(payload)

    def _is_default(self, name: str, value: Any) -> bool:
        payload = self._default_payloads[name]
        if payload is None:  # a default need not be JSON: a mark that says "not given"
            return value is self._defaults[name]
        return payload == self._encoded(value)

    def _encoded(self, value: Any) -> Optional[bytes]:
        try:
            return encode(value, self._hook)
        except KeyRefused:  # the value itself is refused where the payload is made
            return None


def _parameter(pointer: str) -> str:
    """The first name of a pointer, as it is escaped there."""
    return pointer.removesuffix("?null").split("/")[1].removesuffix("~json")
