"""Takes orders of many shops. Shop and number together are the key."""

import http.server
import json
import os

import psycopg

DATABASE = os.environ["DATABASE_URL"]


def take(shop, number):
    with psycopg.connect(DATABASE) as db:
        db.execute("INSERT INTO shop_orders VALUES (%s, %s) ON CONFLICT (shop, number) DO NOTHING", (shop, number))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            take(order["shop"], order["number"])
            self.send_response(204)
        except psycopg.Error as error:  # the queue delivers it again
            self.log_message("failed: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
