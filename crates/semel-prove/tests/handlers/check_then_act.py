"""WRONG: looks whether the order was taken, and then takes it."""

import http.server
import json
import os

import psycopg


def take(order):
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as db:
        if db.execute("SELECT 1 FROM taken WHERE name = %s", (order,)).fetchone() is None:
            db.execute("INSERT INTO taken VALUES (%s)", (order,))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            take(json.loads(body)["order"])
            self.send_response(200)
        except KeyError:
            self.send_response(500)
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128


Server(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
