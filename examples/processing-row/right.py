"""RIGHT: the gate keeps the row, with a lease that lapses when nobody renews it.

After a crash the next delivery takes the task over. The work and its record are committed together, and a run that was
overtaken is refused by its fence and rolls back.
"""

import http.server
import json
import os

import psycopg

DATABASE = os.environ.get("DATABASE_URL", "postgres://localhost/shop")


def ship(parcel, key, fence):
    said = "done"
    with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
        db.execute("INSERT INTO row_shipped VALUES (%s)", (parcel,))
        db.execute("SELECT semel.complete(%s, %s, 200, %s)", (key, fence, json.dumps(said)))
    return 200, said


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key, fence = self.headers["Semel-Key"], int(self.headers["Semel-Fence"])
        status, said = ship(task["parcel"], key, fence)
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # a queue may deliver many at once


if __name__ == "__main__":
    Server(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
