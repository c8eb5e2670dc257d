"""A stand-in for a payment gateway. It refuses the first call for each payment; under a key that it knows it does nothing.

POST /charges charges, POST /receipts mails a receipt; GET the same path tells how often it was done for each payment.
"""

import collections
import http.server
import json
import os
import threading

DONE, KNOWN, ASKED = collections.defaultdict(collections.Counter), set(), set()
ONE_AT_A_TIME = threading.Lock()


def do(path, payment, key):
    """The status: 503 the first time, and nothing is done."""
    with ONE_AT_A_TIME:
        if payment not in ASKED:
            ASKED.add(payment)
            return 503
        if key is None or (path, key) not in KNOWN:
            DONE[path][payment] += 1
        KNOWN.add((path, key))
        return 200


class Bank(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        payment = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["payment"]
        self.answer(do(self.path, payment, self.headers["Idempotency-Key"]), {"reference": f"ref {payment}"})

    def do_GET(self):
        with ONE_AT_A_TIME:
            self.answer(200, dict(DONE[self.path]))

    def answer(self, status, said):
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 4000))), Bank).serve_forever()
