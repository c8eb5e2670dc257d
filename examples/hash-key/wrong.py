"""Imports the lines of a file, each file once. Wrong: the key is Python's hash(), which differs in every process.

Everything else is right: the key and the lines are written in one transaction. But Python salts the hash of a text
anew at each start, so another process, or this one after a restart, does not know the key again.
"""

import http.server
import os

import psycopg

DATABASE = os.environ["DATABASE_URL"]


def take(db, text):
    key = str(hash(text))
    new = db.execute("INSERT INTO files VALUES (%s) ON CONFLICT DO NOTHING RETURNING key", (key,)).fetchone()
    if new:
        for line in text.splitlines():
            db.execute("INSERT INTO imported (line) VALUES (%s)", (line,))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        try:
            with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
                take(db, text)
            self.send_response(204)
        except psycopg.Error as error:  # the queue delivers it again
            self.log_message("rolled back: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
