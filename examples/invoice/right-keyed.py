"""RIGHT, with a model that honours a key: each invoice is billed once and kept once.

The gate acknowledges when the work is done. Killed before that, the next run asks the model under the same key, which
is not billed again, and the row is committed together with the record of the run.
"""

import base64
import http.server
import json
import os
import urllib.error
import urllib.request

import psycopg

DATABASE = os.environ.get("DATABASE_URL", "postgres://localhost/shop")
MODEL = os.environ.get("MODEL_URL", "http://127.0.0.1:3001")


def document_of(push):
    """What was published: the data of a Pub/Sub message."""
    return json.loads(base64.b64decode(push["message"]["data"]))


def total_of(document, key):
    headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
    call = urllib.request.Request(MODEL, json.dumps(document).encode(), headers)
    with urllib.request.urlopen(call) as answer:
        return json.load(answer)["total"]


def keep(document, key, fence):
    try:
        total = total_of(document, key)
    except urllib.error.HTTPError as error:
        return error.code, "the model refuses it"  # 422, no invoice: the gate makes it a letter
    with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
        db.execute("INSERT INTO invoice VALUES (%s, %s)", (document["invoice"], total))
        db.execute("SELECT semel.complete(%s, %s, 200, %s)", (key, fence, json.dumps(total)))
    return 200, total


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        push = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key, fence = self.headers["Semel-Key"], int(self.headers["Semel-Fence"])
        self.answer(*keep(document_of(push), key, fence))

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
