"""WRONG: does to Redis what its words say, with the order's key, at each arrival. Needs no package."""

import http.server
import json
import os
import sys

from wire import redis


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["order"]
        command, key, *rest = sys.argv[1:]
        redis(command, f"{key}:{order}", *rest)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
