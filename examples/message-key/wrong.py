"""Pays out orders. WRONG: the task's name is the key, and who publishes an order once more makes a new task."""

import http.server
import json
import os
import sqlite3

FILE = os.environ["FILE"]


def database():
    return sqlite3.connect(FILE, timeout=5)


def pay(key, order):
    with database() as db:
        db.execute("INSERT OR IGNORE INTO payouts VALUES (?, ?)", (key, order))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            pay(self.headers["X-CloudTasks-TaskName"], task["order"])
            self.send_response(204)
        except sqlite3.Error as error:  # the queue delivers it again
            self.log_message("failed: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    with database() as db:
        db.execute("CREATE TABLE IF NOT EXISTS payouts (key TEXT PRIMARY KEY, order_id TEXT)")
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
