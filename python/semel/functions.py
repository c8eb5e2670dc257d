"""Functions of functions-framework that take effect once, where no gate can run before them.

    @functions_framework.http
    @semel.functions.http(shop, source="cloud-tasks", key="/order_id")
    def charge(request): ...

    @functions_framework.cloud_event
    @semel.functions.cloud_event(shop, key="ce:source ce:id")
    def resize(event): ...

Requests are read, named and answered by the gate's own code, so key rules, outcomes and replies are those of
``semel.toml``: every setting of a ``[[route]]`` may be given here by its name.
"""

from __future__ import annotations

import functools
import json
from typing import Any, Callable, TypeVar

from . import _native, _watch
from ._errors import Again, ConfigError
from ._once import Semel
from ._run import Run, current
from ._wait import native_claim

F = TypeVar("F", bound=Callable[..., Any])

_NOT_A_ROUTES = {"name", "path", "upstream"}


def http(semel: Semel, *, name: str = "", **settings: Any) -> Callable[[F], F]:
    """An HTTP function. ``source`` says who calls: ``cloud-tasks``, ``pubsub``, ``cloudevents`` or ``api``."""

    def decorate(function: F) -> F:
        protected = _Function(semel, function, name, settings)

        @functools.wraps(function)
        def called(request: Any, *args: Any) -> Any:
            return protected.answer(request, lambda: function(request, *args))

        return called  # type: ignore[return-value]

    return decorate


def cloud_event(semel: Semel, *, name: str = "", key: Any = "cloudevents", **settings: Any) -> Callable[[F], F]:
    """A CloudEvents function. What is replayed, parked or kept as a letter returns; what must come again raises."""
    settings = {"source": "cloudevents", "key": key, **settings}

    def decorate(function: F) -> F:
        protected = _Function(semel, function, name, settings)

        @functools.wraps(function)
        def called(event: Any) -> Any:
            import flask

            reply = protected.answer(flask.request, lambda: _done(function(event)))
            if reply.status_code >= 300:
                raise Again(f"{protected.name}: {reply.get_data(as_text=True)}")
            return None

        return called  # type: ignore[return-value]

    return decorate


def _done(_: Any) -> str:
    return ""


class _Function:
    """A function, and the route that its requests take."""

    def __init__(self, semel: Semel, function: Callable[..., Any], name: str, settings: dict[str, Any]) -> None:
        self.name = name or f"{function.__module__}.{function.__qualname__}"
        self._semel = semel
        wrong = _NOT_A_ROUTES & settings.keys()
        if wrong:
            raise ConfigError(f"{self.name}: {', '.join(sorted(wrong))} belongs to a gate, not to a function")
        self._route = _native.Route(semel.namespace, _toml({"name": self.name, "path": "/*", **settings}))
        self.route = self.name  # as a watch wants it

    def answer(self, request: Any, call: Callable[[], Any]) -> Any:
        """Flask's response to a request."""
        import flask

        watch = _watch.Watch(self)
        delivery = native_claim(
            _native.Delivery, self._semel.home.get(), self._route, request.method, request.full_path.rstrip("?"),
            list(request.headers.items()), request.get_data(),
        )  # fmt: skip
        if delivery.reply is not None:
            return watch.ended(delivery.reply.word, _response(delivery.reply))
        assert delivery.run is not None, "a request that has no reply runs"
        token = current.set(Run(delivery.run, False, None))
        try:
            with watch.running(delivery.run):
                answer = flask.make_response(call())
        except BaseException as error:
            reply = delivery.raised(not isinstance(error, Exception))
            watch.ended(reply.word, None)
            if not isinstance(error, Exception):
                raise
            _watch.log.exception("%s raised", self.name)
            return _response(reply)
        finally:
            current.reset(token)
        reply = delivery.answered(answer.status_code, list(answer.headers.items()), answer.get_data())
        return watch.ended(reply.word, _response(reply))


def _response(reply: _native.Reply) -> Any:
    import flask

    return flask.Response(reply.body, reply.status, [(name, value) for name, value in reply.headers])


def _toml(route: dict[str, Any]) -> str:
    """A gate's configuration with this route. JSON's texts, numbers and lists are TOML's, too."""
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in route.items()]
    return "\n".join(['store = "dir:unused"', 'upstream = "http://127.0.0.1:1"', "[[route]]", *lines])
