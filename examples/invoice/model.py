"""A stand-in for a model that reads invoices: it is slow, and each call is billed.

With --honours-key a call is billed once per Idempotency-Key, as good services do. GET /bill tells how many calls each
invoice was billed for. A text that is no invoice is refused, and not billed.
"""

import collections
import http.server
import json
import os
import sys
import threading
import time

HONOURS_KEY = "--honours-key" in sys.argv
READING_S = 0.1
ONE_AT_A_TIME = threading.Lock()
KEYS, BILL = set(), collections.Counter()


def bill(key, invoice):
    with ONE_AT_A_TIME:
        if not HONOURS_KEY or key not in KEYS:
            KEYS.add(key)
            BILL[invoice] += 1


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        word, _, total = document["text"].partition(" ")
        if word != "total:":
            return self.answer(422, "this is not an invoice")
        bill(self.headers["Idempotency-Key"], document["invoice"])
        time.sleep(READING_S)
        self.answer(200, {"total": int(total)})

    def do_GET(self):
        self.answer(200, BILL)

    def answer(self, status, said):
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # many may ask at once


if __name__ == "__main__":
    Server(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
