"""A stand-in for a mail service. It sends every mail it is handed, except under an Idempotency-Key that it knows.

POST /mails sends a mail; GET /sent tells how many went out for each notification.
"""

import collections
import http.server
import json
import os
import threading

SENT = collections.Counter()
KNOWN = set()
ONE_AT_A_TIME = threading.Lock()


def send(notification, key):
    """Sends a mail, unless it was sent under this key before."""
    with ONE_AT_A_TIME:
        if key is None or key not in KNOWN:
            SENT[notification] += 1
        KNOWN.add(key)


class Mailer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        mail = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        send(mail["notification"], self.headers["Idempotency-Key"])
        self.answer({"mail": "sent"})

    def do_GET(self):
        with ONE_AT_A_TIME:
            self.answer(dict(SENT))

    def answer(self, what):
        body = json.dumps(what).encode()
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
