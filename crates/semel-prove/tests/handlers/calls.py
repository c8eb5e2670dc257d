"""A service that charges, and a handler that calls it at every arrival, always under the same key.

`calls.py service honours` answers a key that it knows as it did the first time; `calls.py service forgets` charges again.
"""

import http.server
import json
import os
import sys
import urllib.request

KNOWN = {}


def charge(key):
    number = len(KNOWN) + 1
    name = key if "honours" in sys.argv else number
    return {"charge": KNOWN.setdefault(name, number)}


def call(order):
    url = os.environ["PAY_URL"]
    urllib.request.urlopen(f"{url}/rate?order={order}").close()
    body = json.dumps({"order": order}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{url}/charge", body, {"Idempotency-Key": f"k-{order}"})).close()
    return {}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["order"]
        self.answer(charge(self.headers["Idempotency-Key"]) if sys.argv[1] == "service" else call(order))

    def do_GET(self):
        self.answer({"rate": 1})

    def answer(self, said):
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
