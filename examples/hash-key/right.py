"""Imports the lines of a file, each file once. The gate's key is a SHA-256: the same in every process and language.

The gate's record is written in the same transaction as the lines: both are there, or neither is.
"""

import http.server
import os

import psycopg

DATABASE = os.environ["DATABASE_URL"]


def take(db, text):
    for line in text.splitlines():
        db.execute("INSERT INTO imported (line) VALUES (%s)", (line,))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        key, fence = self.headers["Semel-Key"], int(self.headers["Semel-Fence"])
        try:
            with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
                take(db, text)
                db.execute("SELECT semel.complete(%s, %s, 204, '')", (key, fence))
            self.send_response(204)
        except psycopg.Error as error:  # also when this run was overtaken: nothing has changed
            self.log_message("rolled back: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
