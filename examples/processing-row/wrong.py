"""WRONG: a row says "processing", and nobody takes it over.

Killed at work, the row stays: every later delivery is told that the task is being processed, and by whom? By nobody.
"""

import http.server
import json
import os

import psycopg

DATABASE = os.environ.get("DATABASE_URL", "postgres://localhost/shop")


def ship(parcel):
    with psycopg.connect(DATABASE) as db:
        begun = db.execute("INSERT INTO row_task VALUES (%s, 'processing') ON CONFLICT DO NOTHING", (parcel,))
        db.commit()  # so that other deliveries see it
        if begun.rowcount == 0:
            status = db.execute("SELECT status FROM row_task WHERE parcel = %s", (parcel,)).fetchone()[0]
            return (200, "done before") if status == "done" else (409, "already processing")
        db.execute("INSERT INTO row_shipped VALUES (%s)", (parcel,))
        db.execute("UPDATE row_task SET status = 'done' WHERE parcel = %s", (parcel,))
        return 200, "done"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, said = ship(task["parcel"])
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
