"""What became of a call, as values: a result, or one of the exceptions of :mod:`semel` that is not raised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar, Union

from ._errors import (
    Busy,
    Failed,
    Full,
    Mismatched,
    NotCompleted,
    NotKept,
    NotYet,
    Parked,
    Stale,
    StoreUnavailable,
    Unread,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Ran(Generic[T]):
    """This call ran the function. ``recorded`` is false while the store has not taken the outcome yet."""

    value: T
    recorded: bool = True


@dataclass(frozen=True)
class Replayed(Generic[T]):
    """Another call ran the function before; this is its value."""

    value: T


Outcome = Union[
    Ran[T],
    Replayed[T],
    Busy,
    NotYet,
    Full,
    StoreUnavailable,
    Unread,
    Parked,
    Mismatched,
    Stale,
    Failed,
    NotCompleted,
    NotKept,
]
