"""Ships an order under a lease in its row. WRONG: who comes back after the lease has lapsed ships it all the same.

The lease is taken by one atomic statement and lasts longer than the work ever takes. But a process may stand still for
longer than that: another one takes the order over and ships it, and then the first goes on where it stopped.
"""

import http.server
import json
import os

import psycopg

DATABASE = os.environ["DATABASE_URL"]
LEASE = "1 second"

CLAIM = """
INSERT INTO lease_row VALUES (%(order)s, clock_timestamp() + %(lease)s::interval)
ON CONFLICT (order_id) DO UPDATE SET until = excluded.until
WHERE NOT lease_row.shipped AND lease_row.until < clock_timestamp()
RETURNING order_id
"""


def ship(order):
    with psycopg.connect(DATABASE, autocommit=True) as db:
        if db.execute(CLAIM, {"order": order, "lease": LEASE}).fetchone() is None:
            (shipped,) = db.execute("SELECT shipped FROM lease_row WHERE order_id = %s", (order,)).fetchone()
            return 204 if shipped else 409  # the queue delivers it again
        with db.transaction():
            db.execute("INSERT INTO lease_parcel VALUES (%s)", (order,))
            db.execute("UPDATE lease_row SET shipped = true WHERE order_id = %s", (order,))
        return 204


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            status = ship(task["order"])
        except psycopg.Error as error:  # the queue delivers it again
            self.log_message("rolled back: %s", error)
            status = 503
        self.send_response(status)
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
