"""Keeps each customer's address. A change that is older than what stands changes nothing."""

import http.server
import json
import os

import psycopg

DATABASE = os.environ["DATABASE_URL"]
CHANGE = """
    INSERT INTO addresses VALUES (%(customer)s, %(version)s, %(city)s)
    ON CONFLICT (customer) DO UPDATE SET version = excluded.version, city = excluded.city
    WHERE addresses.version < excluded.version
"""


def change(event):
    with psycopg.connect(DATABASE) as db:
        db.execute(CHANGE, event)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            change(event)
            self.send_response(204)
        except psycopg.Error as error:  # the queue delivers it again
            self.log_message("failed: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
