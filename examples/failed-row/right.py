"""RIGHT: a failure is answered as one, and the gate lets the next delivery run.

The gate hands each run the same Idempotency-Key; the mail service honours it, so a mail that was sent just before a
crash is not sent again.
"""

import http.server
import json
import os
import urllib.request

MAILER = os.environ.get("MAILER_URL", "http://127.0.0.1:3001")


def welcome(to, key):
    headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
    mail = urllib.request.Request(MAILER, json.dumps({"to": to}).encode(), headers)
    try:
        urllib.request.urlopen(mail).close()
        return 200, "sent"
    except OSError as error:
        return 503, str(error)  # the queue delivers again, and the gate lets it run


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(*welcome(task["to"], self.headers["Idempotency-Key"]))

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
