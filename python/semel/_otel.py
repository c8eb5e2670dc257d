"""A span for each run, where the OpenTelemetry API is installed; nothing otherwise."""

from __future__ import annotations

import contextlib
from typing import Any, Generator

from . import _native

try:
    from opentelemetry import trace
except ImportError:
    trace = None  # type: ignore[assignment,unused-ignore]


_NOTHING = contextlib.nullcontext()


def span(task: str, run: _native.Run, delivery: dict[str, Any]) -> contextlib.AbstractContextManager[None]:
    """The span of one run."""
    return _NOTHING if trace is None else _span(trace, task, run, delivery)


@contextlib.contextmanager
def _span(api: Any, task: str, run: _native.Run, delivery: dict[str, Any]) -> Generator[None, None, None]:
    """The names are those of OpenTelemetry's messaging conventions."""
    attributes: dict[str, Any] = {
        "messaging.operation.type": "process",
        "semel.key": run.key,
        "semel.fence": run.fence,
        "semel.attempt": run.attempt,
    }
    names = {"system": "messaging.system", "id": "messaging.message.id", "queue": "messaging.destination.name"}
    attributes.update({names[name]: value for name, value in delivery.items() if name in names and value})
    tracer = api.get_tracer("semel")
    # The SDK would ask an exception for its text, and what that raises would take the exception's place.
    with tracer.start_as_current_span(
        f"process {task}", attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield
        except BaseException as error:
            current.set_attribute("error.type", type(error).__qualname__)
            current.set_status(api.StatusCode.ERROR)
            raise
