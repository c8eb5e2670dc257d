"""Ships an order under a lock in Redis. Wrong: the lock lapses while the work still goes on.

Packing takes longer than LOCK_MS, so a second delivery gets the lock too, sees no parcel yet, and packs one more. When
the first is done, its DEL takes away the second one's lock, which lets in a third.
"""

import http.server
import json
import os
import time

import psycopg
import redis

DATABASE = os.environ["DATABASE_URL"]
LOCKS = redis.Redis.from_url(os.environ["REDIS_URL"])
LOCK_MS = 80
PACKING_MS = 200


def pack():
    """Stands for work that is usually quick, and today is not."""
    time.sleep(PACKING_MS / 1000)


def ship(order):
    with psycopg.connect(DATABASE, autocommit=True) as db:
        if db.execute("SELECT 1 FROM parcels WHERE order_id = %s", (order,)).fetchone():
            return
        pack()
        db.execute("INSERT INTO parcels (order_id) VALUES (%s)", (order,))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["order"]
        try:
            self.ship_alone(order)
            self.send_response(204)
        except (psycopg.Error, redis.RedisError) as error:  # the queue delivers it again
            self.log_message("failed: %s", error)
            self.send_response(503)
        self.end_headers()

    def ship_alone(self, order):
        lock = f"lock:{order}"
        while not LOCKS.set(lock, "mine", nx=True, px=LOCK_MS):
            time.sleep(LOCK_MS / 10_000)  # another delivery is at it
        ship(order)
        LOCKS.delete(lock)


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
