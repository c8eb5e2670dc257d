"""RIGHT: three steps whose results the gate keeps.

A step is recorded when it is done. Killed inside one, the next run does that step again, under the same key, which the
partner honours; the steps before it are not repeated, and none is left out.
"""

import http.server
import json
import os
import urllib.request

PARTNERS = os.environ.get("PARTNERS_URL", "http://127.0.0.1:3001")
STEPS = ["charge", "reserve", "mail"]


def ask(method, url, body=b"", headers=()):
    with urllib.request.urlopen(urllib.request.Request(url, body, dict(headers), method=method)) as answer:
        return answer.status, answer.read()


def step(steps, name, order):
    """Does a step unless an earlier run of the same task has done it; returns its result either way."""
    status, said = ask("POST", f"{steps}/{name}")
    if status == 200:
        return said.decode()
    key = json.loads(said)["key"]  # 201: do it, under a key that is the same in every run
    body = json.dumps({"order": order}).encode()
    _, result = ask("POST", f"{PARTNERS}/{name}", body, {"Idempotency-Key": key, "Content-Type": "application/json"})
    ask("PUT", f"{steps}/{name}", result)
    return result.decode()


def process(order, steps):
    try:
        return 200, [step(steps, name, order) for name in STEPS]
    except OSError as error:  # a partner is away, or this run was overtaken (410): the next one goes on
        return 503, str(error)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(*process(task["order"], self.headers["Semel-Steps"]))

    def answer(self, status, said):
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # a queue may deliver many at once


if __name__ == "__main__":
    Server(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
