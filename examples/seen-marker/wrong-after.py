"""WRONG: the marker "seen" is written after the work.

Killed in between, the task is done and not marked: its next delivery does it again. The lock keeps two deliveries
from running at the same time, and is no help against that.
"""

import http.server
import json
import os

import psycopg

DATABASE = os.environ.get("DATABASE_URL", "postgres://localhost/shop")


def pay_out(name):
    with psycopg.connect(DATABASE, autocommit=True) as db:  # each statement is committed by itself
        db.execute("SELECT pg_advisory_lock(hashtext(%s))", (name,))  # until the connection ends
        if db.execute("SELECT FROM marker_seen WHERE name = %s", (name,)).rowcount > 0:
            return "seen before"
        db.execute("INSERT INTO marker_payout VALUES (%s)", (name,))
        db.execute("INSERT INTO marker_seen VALUES (%s)", (name,))
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
