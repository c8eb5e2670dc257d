"""WRONG: the marker "seen" is written before the work.

Killed in between, the task is marked and not done: its next delivery is taken for a repeat, and nobody ever does it.
"""

import http.server
import json
import os

import psycopg

DATABASE = os.environ.get("DATABASE_URL", "postgres://localhost/shop")


def pay_out(name):
    with psycopg.connect(DATABASE, autocommit=True) as db:  # each statement is committed by itself
        marked = db.execute("INSERT INTO marker_seen VALUES (%s) ON CONFLICT DO NOTHING", (name,))
        if marked.rowcount == 0:
            return "seen before"
        db.execute("INSERT INTO marker_payout VALUES (%s)", (name,))
        return "paid out"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, said = 200, pay_out(task["name"])
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # a queue may deliver many at once


if __name__ == "__main__":
    Server(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
