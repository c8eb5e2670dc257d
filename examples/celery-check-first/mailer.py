"""A stand-in for a mail service. With --honours-key it sends nothing twice under one Idempotency-Key.

POST /mails sends a mail; GET /sent tells how many went out for each user.
"""

import collections
import http.server
import json
import os
import sys
import threading

HONOURS_KEY = "--honours-key" in sys.argv
SENT, KNOWN = collections.Counter(), set()
ONE_AT_A_TIME = threading.Lock()


def send(user, key):
    with ONE_AT_A_TIME:
        if not HONOURS_KEY or key not in KNOWN:
            SENT[user] += 1
        if key is not None:
            KNOWN.add(key)


class Mailer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        mail = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        send(mail["user"], self.headers["Idempotency-Key"])
        self.answer({"mail": "sent"})

    def do_GET(self):
        with ONE_AT_A_TIME:
            self.answer(dict(SENT))

    def answer(self, said):
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 4000))), Mailer).serve_forever()
