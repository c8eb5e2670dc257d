"""WRONG: a task of three steps that notes each step before it is done.

Killed between the note and the step, it resumes with the next one: the order is charged and mailed, and nothing was
reserved.
"""

import http.server
import json
import os
import urllib.request

import psycopg

DATABASE = os.environ.get("DATABASE_URL", "postgres://localhost/shop")
PARTNERS = os.environ.get("PARTNERS_URL", "http://127.0.0.1:3001")
STEPS = ["charge", "reserve", "mail"]


def call(step, order):
    headers = {"Idempotency-Key": f"{order} {step}", "Content-Type": "application/json"}
    body = json.dumps({"order": order}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{PARTNERS}/{step}", body, headers)).close()


def process(order):
    with psycopg.connect(DATABASE, autocommit=True) as db:
        db.execute("INSERT INTO three_steps VALUES (%s, 0) ON CONFLICT DO NOTHING", (order,))
        begun = db.execute("SELECT begun FROM three_steps WHERE purchase = %s", (order,)).fetchone()[0]
        for number, step in enumerate(STEPS[begun:], start=begun + 1):
            db.execute("UPDATE three_steps SET begun = %s WHERE purchase = %s", (number, order))
            call(step, order)
    return 200, "processed"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(*process(task["order"]))

    def answer(self, status, said):
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
