"""WRONG: the message is acknowledged before the work is done.

The model is slow, so a thread does the work and Pub/Sub hears 204 at once. Killed after that, the invoice is lost: an
acknowledged message does not come again. Broken documents vanish in the log. That a repeat is harmless here (the model
honours a key, the row is unique) is no help.
"""

import base64
import http.server
import json
import os
import threading
import urllib.request

import psycopg

DATABASE = os.environ.get("DATABASE_URL", "postgres://localhost/shop")
MODEL = os.environ.get("MODEL_URL", "http://127.0.0.1:3001")


def document_of(push):
    """What was published: the data of a Pub/Sub message."""
    return json.loads(base64.b64decode(push["message"]["data"]))


def read(document):
    headers = {"Idempotency-Key": document["invoice"], "Content-Type": "application/json"}
    call = urllib.request.Request(MODEL, json.dumps(document).encode(), headers)
    with urllib.request.urlopen(call) as answer:
        total = json.load(answer)["total"]
    with psycopg.connect(DATABASE) as db:
        db.execute(
            "INSERT INTO invoice_early VALUES (%s, %s) ON CONFLICT DO NOTHING", (document["invoice"], total)
        )


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        push = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        threading.Thread(target=read, args=[document_of(push)]).start()
        self.send_response(204)
        self.end_headers()


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128  # a topic may deliver many at once


if __name__ == "__main__":
    Server(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
