"""Durations: seconds, a ``timedelta``, or a text as in semel.toml."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Union

from ._errors import ConfigError

Duration = Union[float, int, str, timedelta]

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TEXT = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def seconds(name: str, value: Duration) -> float:
    """The seconds that a setting says."""
    said: Any = value  # whatever callers without a type checker give
    if isinstance(said, timedelta):
        return said.total_seconds()
    if isinstance(said, str):
        written = _TEXT.fullmatch(said.strip())
        if written:
            return float(written[1]) * _UNITS[written[2]]
    elif isinstance(said, (int, float)) and not isinstance(said, bool):
        return float(said)
    raise ConfigError(f"{name}={value!r} is not a duration: write seconds, a timedelta, or a text such as '30s' or '7d'")
