"""A stand-in for a bank, a warehouse and a mail service. Each honours Idempotency-Key.

POST /charge, /reserve, /mail with an order; GET the same path tells how often it was done for each order.
"""

import collections
import http.server
import json
import os
import threading

ONE_AT_A_TIME = threading.Lock()
KEYS, DONE = set(), collections.defaultdict(collections.Counter)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["order"]
        key = (self.path, self.headers["Idempotency-Key"])
        with ONE_AT_A_TIME:
            if key not in KEYS:
                KEYS.add(key)
                DONE[self.path][order] += 1
        self.answer(200, f"{self.path} {order}")

    def do_GET(self):
        self.answer(200, DONE[self.path])

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
