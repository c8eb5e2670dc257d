"""A stand-in for a model that reads invoices: it is slow, each call is billed, and no two answers are the same.

With --honours-key a call is billed and answered once per Idempotency-Key, as good services do. GET /bill tells how many
calls each invoice was billed for.
"""

import collections
import http.server
import json
import os
import sys
import threading
import time

HONOURS_KEY = "--honours-key" in sys.argv
READING_S = 0.2
ONE_AT_A_TIME = threading.Lock()
ANSWERS, BILL = {}, collections.Counter()


def read(key, invoice):
    with ONE_AT_A_TIME:
        if not HONOURS_KEY or key not in ANSWERS:
            BILL[invoice] += 1
            ANSWERS[key] = {"invoice": invoice, "total": 4200, "reading": BILL.total()}
        return ANSWERS[key]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = read(self.headers["Idempotency-Key"], document["name"])
        time.sleep(READING_S)
        self.answer(answer)

    def do_GET(self):
        self.answer(BILL)

    def answer(self, said):
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # many may ask at once


if __name__ == "__main__":
    Server(("127.0.0.1", int(os.environ.get("PORT", 3001))), Handler).serve_forever()
