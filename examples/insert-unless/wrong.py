"""Books an invoice, once. WRONG: one statement that looks and writes is taken for an atomic one.

It is one statement, and it still looks first: two transactions at once both see no row, and both write one. Only a
unique constraint makes the second wait for the first.
"""

import http.server
import json
import os

import psycopg

DATABASE = os.environ["DATABASE_URL"]


def book(invoice, cents):
    with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
        db.execute(
            "INSERT INTO bookings SELECT %(invoice)s, %(cents)s "
            "WHERE NOT EXISTS (SELECT FROM bookings WHERE invoice = %(invoice)s)",
            {"invoice": invoice, "cents": cents},
        )


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            book(task["invoice"], task["cents"])
            self.send_response(204)
        except psycopg.Error as error:  # the queue delivers it again
            self.log_message("rolled back: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
