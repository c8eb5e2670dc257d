"""WRONG: counts every arrival in a SQLite file. Needs no package."""

import http.server
import json
import os
import sqlite3


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["order"]
        with sqlite3.connect(os.environ["FILE"], timeout=5) as db:
            db.execute("INSERT INTO taken VALUES (?)", (order,))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


with sqlite3.connect(os.environ["FILE"]) as db:
    db.execute("CREATE TABLE IF NOT EXISTS taken (name text)")
Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
