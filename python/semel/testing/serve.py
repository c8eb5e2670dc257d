"""``python -m semel.testing.serve shop:process_payment --port 8000``: a function or task behind HTTP, for ``semel prove``.

A POST with a JSON object is a call with these arguments; the answer says what became of it.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import inspect
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .._errors import Again, Error, KeyRefused, Mismatched, Parked
from .._payload import encode


def main(arguments: list[str]) -> None:
    """Serves until it is ended."""
    parser = argparse.ArgumentParser(prog="python -m semel.testing.serve", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("task", help="module:name of a function, a function decorated with once, or a Celery task")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=int(os.environ.get("PORT", "8000")))
    parsed = parser.parse_args(arguments)
    sys.path.insert(0, os.getcwd())
    ThreadingHTTPServer.request_queue_size = 128  # the prover calls at once
    server = ThreadingHTTPServer((parsed.host, parsed.port), _handler(_find(parsed.task)))
    server.daemon_threads = True
    print(f"serving {parsed.task} on http://{parsed.host}:{server.server_port}", file=sys.stderr, flush=True)
    server.serve_forever()


def _find(name: str) -> Any:
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _handler(task: Any) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(200, {"ready": True})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, said, after = _call(task, body)
            self._answer(status, said, after)

        def _answer(self, status: int, said: Any, after: float | None = None) -> None:
            body = encode(said, lambda value: value if _is_known(value) else repr(value))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if after is not None:
                self.send_header("Retry-After", str(max(1, round(after))))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """One line per request on stderr would drown what the function says."""

    return Handler


def _is_known(value: Any) -> bool:
    try:
        encode(value)
    except KeyRefused:
        return False
    return True


def _call(task: Any, body: bytes) -> tuple[int, Any, float | None]:
    """Status, answer and when to come again."""
    try:
        arguments = json.loads(body or b"{}")
        value = task(**arguments)
        return 200, asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value, None
    except Again as again:
        return 409, {"error": str(again)}, again.retry_after
    except Parked as parked:  # as a worker does: a person looks, and a queue that came again would change nothing
        return 202, {"error": str(parked)}, None
    except (KeyRefused, Mismatched) as refused:
        return 422, {"error": str(refused)}, None
    except Error as error:
        return 409, {"error": str(error)}, None
    except Exception as error:
        return 500, {"error": f"{type(error).__name__}: {error}"}, None


async def _awaited(value: Any) -> Any:
    return await value


if __name__ == "__main__":
    main(sys.argv[1:])
