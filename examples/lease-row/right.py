"""Ships an order under a lease in its row, with a fence: a number that rises whenever the order is taken over.

Who stood still for longer than the lease finds another number in the row, and nothing of what it did is committed.
"""

import http.server
import json
import os

import psycopg

DATABASE = os.environ["DATABASE_URL"]
LEASE = "1 second"

CLAIM = """
INSERT INTO lease_row VALUES (%(order)s, clock_timestamp() + %(lease)s::interval)
ON CONFLICT (order_id) DO UPDATE SET until = excluded.until, fence = lease_row.fence + 1
WHERE NOT lease_row.shipped AND lease_row.until < clock_timestamp()
RETURNING fence
"""


def ship(order):
    with psycopg.connect(DATABASE, autocommit=True) as db:
        claimed = db.execute(CLAIM, {"order": order, "lease": LEASE}).fetchone()
        if claimed is None:
            (shipped,) = db.execute("SELECT shipped FROM lease_row WHERE order_id = %s", (order,)).fetchone()
            return 204 if shipped else 409  # the queue delivers it again
        with db.transaction():
            db.execute("INSERT INTO lease_parcel VALUES (%s)", (order,))
            mine = "UPDATE lease_row SET shipped = true WHERE order_id = %s AND fence = %s"
            if db.execute(mine, (order, *claimed)).rowcount == 0:
                raise psycopg.Rollback()  # another one has taken it over
            return 204
        return 409


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
