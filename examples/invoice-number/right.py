"""Writes an invoice for an order, once. Only the order's own constraint makes a duplicate; the database draws numbers."""

import http.server
import json
import os

import psycopg

DATABASE = os.environ["DATABASE_URL"]


def invoice(order):
    with psycopg.connect(DATABASE, autocommit=True) as db:
        db.execute("INSERT INTO drawn_invoices VALUES (%s, DEFAULT) ON CONFLICT (order_id) DO NOTHING", (order,))


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
