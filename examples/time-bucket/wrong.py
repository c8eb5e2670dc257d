"""Charges subscriptions. WRONG: the key holds the day on which the task arrives, not the month that is paid for."""

import http.server
import json
import os
import sqlite3
import time

FILE = os.environ["FILE"]


def database():
    return sqlite3.connect(FILE, timeout=5)


def charge(key, subscription):
    with database() as db:
        db.execute("INSERT OR IGNORE INTO charges VALUES (?, ?)", (key, subscription))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            charge(f"{task['subscription']} {time.strftime('%Y-%m-%d')}", task["subscription"])
            self.send_response(204)
        except sqlite3.Error as error:  # the queue delivers it again
            self.log_message("failed: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    with database() as db:
        db.execute("CREATE TABLE IF NOT EXISTS charges (key TEXT PRIMARY KEY, subscription TEXT)")
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
