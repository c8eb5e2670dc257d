"""A stand-in for a web shop: takes an order to pay, hands it to the workers of a queue, and answers when it is paid.

Whoever orders does so again when no good answer came: that is what "at least once" is.
"""

import http.server
import json
import os
import sys

import celery

QUEUE = sys.argv[1]
PATIENCE_S = 1.0

app = celery.Celery("payment", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"])


class Shop(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            app.send_task("pay", [order["payment"], order["cents"]], queue=QUEUE).get(timeout=PATIENCE_S)
            self.send_response(204)
        except Exception as error:  # it failed, or no worker was heard of
            self.log_message("not paid: %r", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Shop).serve_forever()
