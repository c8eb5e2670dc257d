"""A span for each run, where the OpenTelemetry API is installed; nothing otherwise."""

from __future__ import annotations

import contextlib
from typing import Any, ContextManager

from . import _native

try:
    from opentelemetry import trace
except ImportError:
    trace = None  # type: ignore[assignment,unused-ignore]


def span(task: str, run: _native.Run, delivery: dict[str, Any]) -> ContextManager[Any]:
    """The span of one run. The names are those of OpenTelemetry's messaging conventions."""
    if trace is None:
        return contextlib.nullcontext()
    attributes: dict[str, Any] = {
        "messaging.operation.type": "process",
        "semel.key": run.key,
        "semel.fence": run.fence,
        "semel.attempt": run.attempt,
    }
    names = {"system": "messaging.system", "id": "messaging.message.id", "queue": "messaging.destination.name"}
    attributes.update({names[name]: value for name, value in delivery.items() if name in names and value})
    return trace.get_tracer("semel").start_as_current_span(f"process {task}", attributes=attributes)
