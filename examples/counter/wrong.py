"""Adds the points of a round to a player's score. Wrong: each delivery of the same round adds them once more.

The UPDATE is atomic, so nothing is lost when two come at once. But nothing says that this round was counted.
"""

import http.server
import json
import os

import psycopg

DATABASE = os.environ["DATABASE_URL"]


def count(db, task):
    db.execute("UPDATE players SET score = score + %(points)s WHERE name = %(player)s", task)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
                count(db, task)
            self.send_response(204)
        except psycopg.Error as error:  # the queue delivers it again
            self.log_message("rolled back: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
