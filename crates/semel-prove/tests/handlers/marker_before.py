"""WRONG: marks an order as seen in Redis before it does the work there. Needs no package."""

import http.server
import json
import os

from wire import redis

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["order"]
        if redis("SETNX", f"prove-seen:{order}", "1") == b":1":
            redis("INCR", f"prove-done:{order}")
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
