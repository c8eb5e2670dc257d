"""A stand-in for a customer database elsewhere. It adds an entry at every call, except under an Idempotency-Key it knows.

POST /entries adds one; GET /entries tells how many each order has.
"""

import collections
import http.server
import json
import os
import threading

ENTRIES, KNOWN = collections.Counter(), set()
ONE_AT_A_TIME = threading.Lock()


def add(order, key):
    with ONE_AT_A_TIME:
        if key is None or key not in KNOWN:
            ENTRIES[order] += 1
        KNOWN.add(key)


class Crm(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        entry = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        add(entry["order"], self.headers["Idempotency-Key"])
        self.answer({"entry": "added"})

    def do_GET(self):
        with ONE_AT_A_TIME:
            self.answer(dict(ENTRIES))

    def answer(self, said):
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 4000))), Crm).serve_forever()
