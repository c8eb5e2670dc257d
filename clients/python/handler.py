"""What the client programs share: a handler that answers as told and remembers what came, and checks that speak."""

import contextlib
import dataclasses
import http.client
import http.server
import threading
import time

# No wait for a delivery is longer.
PATIENCE_S = 30


@dataclasses.dataclass
class Request:
    """A delivery, as it came."""

    method: str
    path: str
    headers: http.client.HTTPMessage
    body: bytes


class Handler:
    """Serves on this port of the loopback interface, a free one unless it matters; one thread per request."""

    def __init__(self, port=0):
        self.changed = threading.Condition()
        self.answers = {}
        self.seen = {}
        outer = self

        class Answer(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                status, headers = outer.take(self)
                self.send_response_only(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = do_POST

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Answer)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.root = f"http://127.0.0.1:{server.server_port}"

    def answering(self, path, *answers):
        """A URL that answers so, one after the other; the last one again and again. An answer is a status, or a
        status and headers."""
        self.answers[path] = list(answers) or [200]
        return self.root + path

    def take(self, request):
        body = request.rfile.read(int(request.headers["Content-Length"] or 0))
        path = request.path.split("?")[0]
        with self.changed:
            seen = Request(request.command, request.path, request.headers, body)
            self.seen.setdefault(path, []).append(seen)
            self.changed.notify_all()
            answers = self.answers.get(path, [404])
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return answer if isinstance(answer, tuple) else (answer, {})

    def requests(self, path, count=1):
        """Waits until so many requests have come, and gives all of them."""
        with self.changed:
            came = self.changed.wait_for(lambda: len(self.seen.get(path, [])) >= count, PATIENCE_S)
            seen = list(self.seen.get(path, []))
        assert came, f"{path}: {len(seen)} requests came in {PATIENCE_S} s, not {count}"
        return seen


def check(what, seen, expected):
    """Says what was seen, or stops the program."""
    assert seen == expected, f"{what}: saw {seen!r}, not {expected!r}"
    print(f"ok: {what}", flush=True)


@contextlib.contextmanager
def refused(what, kind, words=""):
    """What is inside must be refused with this exception, and with these words."""
    try:
        yield
    except kind as error:
        assert words in str(error), f"{what}: refused with {error}, not {words!r}"
        print(f"ok: {what} is refused: {type(error).__name__}", flush=True)
    else:
        raise AssertionError(f"{what}: not refused")


def until(what, done):
    """Asks again and again, because nobody tells us; returns what `done` returned."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if result := done():
            return result
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {PATIENCE_S} s")
