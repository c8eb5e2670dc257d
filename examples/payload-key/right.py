"""Books an invoice, once: its number is the key. What comes under a known number with another amount is not booked."""

import http.server
import json
import os

import psycopg

DATABASE = os.environ["DATABASE_URL"]


def book(task):
    with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
        key = (task["invoice"],)
        new = db.execute("INSERT INTO payload_seen VALUES (%s) ON CONFLICT DO NOTHING RETURNING key", key)
        if new.fetchone():
            db.execute("INSERT INTO payload_booking VALUES (%(invoice)s, %(cents)s)", task)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            book(task)
            self.send_response(204)
        except psycopg.Error as error:  # the queue delivers it again
            self.log_message("rolled back: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
