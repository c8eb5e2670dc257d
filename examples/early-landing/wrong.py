"""WRONG: rows are collected in memory and inserted together, and a message is acknowledged as soon as it is collected.

Many rows in one transaction are fast. But what was acknowledged does not come again: killed before the next COMMIT, the
rows are lost.
"""

import base64
import http.server
import json
import os
import queue
import threading

import psycopg

DATABASE = os.environ.get("DATABASE_URL", "postgres://localhost/shop")
COLLECTED = queue.SimpleQueue()


def insert_for_ever():
    """Whatever was collected meanwhile, in one transaction."""
    while True:
        rows = [COLLECTED.get()]
        while not COLLECTED.empty():
            rows.append(COLLECTED.get())
        try:
            with psycopg.connect(DATABASE) as db:
                db.cursor().executemany("INSERT INTO early_landing VALUES (%s, %s)", rows)
        except psycopg.Error:
            for row in rows:
                COLLECTED.put(row)  # once more, if this process lives as long


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        push = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        payload = base64.b64decode(push["message"]["data"]).decode()
        COLLECTED.put((json.loads(payload)["order"], payload))
        self.send_response(204)
        self.end_headers()


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # a topic may deliver many at once


if __name__ == "__main__":
    threading.Thread(target=insert_for_ever, daemon=True).start()
    Server(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
