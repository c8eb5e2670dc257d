"""Books an invoice, once. WRONG: the key is a hash of everything that came, so a corrected amount is another invoice.

The hash is a good one, and the key is recorded together with the booking. But it does not say what the work is.
"""

import hashlib
import http.server
import json
import os

import psycopg

DATABASE = os.environ["DATABASE_URL"]


def key_of(task):
    return hashlib.sha256(json.dumps(task, sort_keys=True).encode()).hexdigest()


def book(task):
    with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
        new = db.execute("INSERT INTO payload_seen VALUES (%s) ON CONFLICT DO NOTHING RETURNING key", (key_of(task),))
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
