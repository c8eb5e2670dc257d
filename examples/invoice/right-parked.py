"""RIGHT, with a model that honours no key: each invoice is billed at most once.

Killed while the model reads, nobody can know whether it was billed. The route says in_doubt = "park": the gate does not
run it again, but keeps the message as a letter for a person to decide.
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


def keep(document):
    call = urllib.request.Request(MODEL, json.dumps(document).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(call) as answer:
            total = json.load(answer)["total"]
    except urllib.error.HTTPError as error:
        if error.code != 422:
            raise  # billed or not? The connection breaks off, and the gate parks it
        return 422, "this is not an invoice"  # the gate makes it a letter
    with psycopg.connect(DATABASE) as db:
        db.execute("INSERT INTO invoice VALUES (%s, %s)", (document["invoice"], total))
    return 200, total


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        push = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(*keep(document_of(push)))

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
