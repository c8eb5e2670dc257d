"""Writes an invoice for an order, once. WRONG: it takes every unique violation for a duplicate.

Two orders at once draw the same next number. One of them runs into the constraint on the number, not on the order.
"""

import http.server
import json
import os

import psycopg

DATABASE = os.environ["DATABASE_URL"]


def invoice(order):
    with psycopg.connect(DATABASE, autocommit=True) as db:
        try:
            (number,) = db.execute("SELECT coalesce(max(number), 0) + 1 FROM drawn_invoices").fetchone()
            db.execute("INSERT INTO drawn_invoices VALUES (%s, %s)", (order, number))
        except psycopg.errors.UniqueViolation:
            pass  # a duplicate: it has its invoice


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            invoice(task["order"])
            self.send_response(204)
        except psycopg.Error as error:  # the queue delivers it again
            self.log_message("failed: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
