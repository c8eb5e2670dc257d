"""Pays out winnings, once: the marker and the payout are committed together."""

import http.server
import json
import os
import sqlite3

FILE = os.environ["FILE"]


def database():
    return sqlite3.connect(FILE, timeout=10)


def pay(winner, cents):
    with database() as db:
        new = db.execute("INSERT OR IGNORE INTO seen VALUES (?)", (winner,)).rowcount > 0
        if new:
            db.execute("INSERT INTO payouts VALUES (?, ?)", (winner, cents))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            pay(task["winner"], task["cents"])
            self.send_response(204)
        except sqlite3.Error as error:  # the queue delivers it again
            self.log_message("failed: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    with database() as db:
        db.execute("CREATE TABLE IF NOT EXISTS seen (winner TEXT PRIMARY KEY)")
        db.execute("CREATE TABLE IF NOT EXISTS payouts (winner TEXT, cents INTEGER)")
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
