"""A mail service of our own. It honours Idempotency-Key: a mail is sent once per key; here that means it has a row.

Like everything it is killed now and then, and is back a moment later.
"""

import http.server
import json
import os

import psycopg

DATABASE = os.environ.get("DATABASE_URL", "postgres://localhost/shop")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        to = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["to"]
        with psycopg.connect(DATABASE, autocommit=True) as db:
            mail = (self.headers["Idempotency-Key"], to)
            db.execute("INSERT INTO failed_mail VALUES (%s, %s) ON CONFLICT DO NOTHING", mail)
        self.answer(200, "sent")

    def answer(self, status, said):
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # many may ask at once


if __name__ == "__main__":
    Server(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
