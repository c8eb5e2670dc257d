"""Ships an order once. The gate's lease is renewed while the work goes on, and its fence is checked at the end.

The parcel and the gate's record are written by one transaction. A run that was overtaken, because it stood still
longer than its lease, has an old fence: semel.complete raises, and its parcel is rolled back.
"""

import http.server
import json
import os
import time

import psycopg

DATABASE = os.environ["DATABASE_URL"]
PACKING_MS = 200


def pack():
    """Stands for work that is usually quick, and today is not."""
    time.sleep(PACKING_MS / 1000)


def ship(order, key, fence):
    pack()
    with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
        db.execute("INSERT INTO parcels (order_id) VALUES (%s)", (order,))
        db.execute("SELECT semel.complete(%s, %s, 204, '')", (key, fence))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["order"]
        try:
            ship(order, self.headers["Semel-Key"], int(self.headers["Semel-Fence"]))
            self.send_response(204)
        except psycopg.Error as error:  # also when this run was overtaken: nothing has changed
            self.log_message("rolled back: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
