"""Takes pieces off the stock exactly once per order, whatever is killed, and whenever.

The record of the run and the change of the stock are committed by one transaction: both are there, or neither is.
"""

import http.server
import json
import os

import psycopg

DATABASE = os.environ.get("DATABASE_URL", "postgres://localhost/shop")


def take(db, order):
    """Takes the pieces. Status and answer; only 200 has changed anything."""
    row = db.execute(
        "UPDATE stock SET pieces = pieces - %(pieces)s WHERE item = %(item)s AND pieces >= %(pieces)s RETURNING pieces",
        order,
    ).fetchone()
    if row:
        return 200, {"item": order["item"], "left": row[0]}
    known = db.execute("SELECT pieces FROM stock WHERE item = %(item)s", order).fetchone()
    if known:
        return 409, {"item": order["item"], "error": f"only {known[0]} left"}
    return 404, {"item": order["item"], "error": "no such item"}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key, fence = self.headers["Semel-Key"], int(self.headers["Semel-Fence"])
        try:
            with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
                status, answer = take(db, order)
                if status == 200:
                    db.execute("SELECT semel.complete(%s, %s, %s, %s)", (key, fence, status, json.dumps(answer)))
        except psycopg.Error as error:  # also when this run was overtaken: nothing has changed
            status, answer = 500, {"error": str(error)}
            self.log_message("rolled back: %s", error)
        self.answer(status, answer)

    def answer(self, status, answer):
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
