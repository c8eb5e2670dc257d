"""Deliver at least once. Take effect once.

    shop = semel.Semel("postgres://semel@db/semel", namespace="shop")

    @shop.once(key="order_id")
    def charge(order_id: str, cents: int) -> Receipt: ...
"""

from ._errors import (
    Again,
    Busy,
    ConfigError,
    Error,
    Failed,
    Full,
    KeyRefused,
    Mismatched,
    NotCompleted,
    NotKept,
    NotYet,
    Parked,
    Stale,
    StepRefused,
    StoreUnavailable,
    Unread,
)
from ._home import drain_all
from ._once import AsyncOnce, Once, Semel
from ._outcomes import Outcome, Ran, Replayed
from ._run import Run, StepInfo, run, step
from ._transaction import complete, once_in

__all__ = [
    "Again",
    "AsyncOnce",
    "Busy",
    "ConfigError",
    "Error",
    "Failed",
    "Full",
    "KeyRefused",
    "Mismatched",
    "NotCompleted",
    "NotKept",
    "NotYet",
    "Once",
    "Outcome",
    "Parked",
    "Ran",
    "Replayed",
    "Run",
    "Semel",
    "Stale",
    "StepInfo",
    "StepRefused",
    "StoreUnavailable",
    "Unread",
    "complete",
    "drain_all",
    "once_in",
    "run",
    "step",
]
