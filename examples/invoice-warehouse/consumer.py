"""The consumer: asks the model to read the object that a bucket event names, and answers what the model says.

It has no database and no memory. The gate before it lands what it answers, and knows which deliveries are the same.
"""

import base64
import http.server
import json
import os
import urllib.request

MODEL = os.environ.get("MODEL_URL", "http://127.0.0.1:3001")


def event_of(push):
    """What Cloud Storage published: the object that was written."""
    return json.loads(base64.b64decode(push["message"]["data"]))


def reading_of(event, key):
    """A model that honours the key bills a repeated call once; this one passes it on in any case."""
    headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(MODEL, json.dumps(event).encode(), headers)) as answer:
        return answer.read()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        push = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(reading_of(event_of(push), self.headers["Semel-Key"]))

    def do_GET(self):
        self.answer(b'"ready"')

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # a topic may deliver many at once


if __name__ == "__main__":
    Server(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
