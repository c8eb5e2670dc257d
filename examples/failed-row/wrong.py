"""WRONG: a row says "failed", and every later delivery takes it for an end.

The mail service was away for a moment. The queue delivers the task again, as it should, and hears 200: the row is
there, so the task is known. Its mail is never sent.
"""

import http.server
import json
import os
import urllib.request

import psycopg

DATABASE = os.environ.get("DATABASE_URL", "postgres://localhost/shop")
MAILER = os.environ.get("MAILER_URL", "http://127.0.0.1:3001")


def send(to):
    headers = {"Idempotency-Key": f"welcome {to}", "Content-Type": "application/json"}
    mail = urllib.request.Request(MAILER, json.dumps({"to": to}).encode(), headers)
    urllib.request.urlopen(mail).close()


def welcome(to):
    with psycopg.connect(DATABASE, autocommit=True) as db:
        known = db.execute("SELECT status FROM failed_row WHERE recipient = %s", (to,)).fetchone()
        if known:
            return 200, f"known: {known[0]}"
        try:
            send(to)
            status, said = 200, "sent"
        except OSError as error:
            status, said = 500, str(error)
        word = "sent" if status == 200 else "failed"
        db.execute("INSERT INTO failed_row VALUES (%s, %s) ON CONFLICT DO NOTHING", (to, word))
        return status, said


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(*welcome(task["to"]))

    def answer(self, status, said):
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
