"""A stand-in for a payment gateway. It charges at every call, except under an Idempotency-Key that it knows.

POST /charges charges; GET /charged tells how often each payment was charged.
"""

import collections
import http.server
import json
import os
import threading

CHARGED = collections.Counter()
KNOWN = set()
ONE_AT_A_TIME = threading.Lock()


def charge(payment, key):
    """Charges, unless this key was charged before."""
    with ONE_AT_A_TIME:
        if key is None or key not in KNOWN:
            CHARGED[payment] += 1
        KNOWN.add(key)


class Bank(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        charge(order["payment"], self.headers["Idempotency-Key"])
        self.answer({"charge": "done"})

    def do_GET(self):
        with ONE_AT_A_TIME:
            self.answer(dict(CHARGED))

    def answer(self, what):
        body = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 4000))), Bank).serve_forever()
