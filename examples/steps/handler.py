"""A task of three steps, each done once, also when this process is killed between two of them.

Run it behind `semel gate`, which sends the header Semel-Steps. Only Python's standard library is needed.
"""

import http.server
import json
import os
import urllib.request


def step(steps, name, do):
    """Does a step unless an earlier run of the same task has done it; returns its result either way."""
    with urllib.request.urlopen(urllib.request.Request(f"{steps}/{name}", method="POST")) as answer:
        if answer.status == 200:  # an earlier run did it: this is what it recorded
            return answer.read().decode()
        key = json.load(answer)["key"]  # 201: do it, under a key of its own
    result = do(key)
    urllib.request.urlopen(urllib.request.Request(f"{steps}/{name}", data=result.encode(), method="PUT")).close()
    return result


def note(line):
    """Stands for an effect: a call to a bank, a mail, a parcel."""
    with open(os.environ.get("LEDGER", "ledger.txt"), "a") as ledger:
        ledger.write(line + "\n")
    return line


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["order"]
        steps = self.headers["Semel-Steps"]
        # A bank that knows idempotency keys would be handed `key`: it is the same in every run.
        paid = step(steps, "charge", lambda key: note(f"charged {order}"))
        packed = step(steps, "pack", lambda key: note(f"packed {order}"))
        sent = step(steps, "send", lambda key: note(f"sent {order}"))
        body = json.dumps([paid, packed, sent]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
