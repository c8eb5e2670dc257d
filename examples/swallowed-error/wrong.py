"""Confirms an order by mail, once. WRONG: an error of the mail service is logged, and the order counts as confirmed.

The row and the mail's key keep duplicates away. But a mail that was not sent is never sent again.
"""

import http.server
import json
import os
import urllib.request

import psycopg

DATABASE = os.environ["DATABASE_URL"]
MAILER = os.environ["MAILER_URL"]


def mail(order, to):
    body = json.dumps({"notification": order, "to": to}).encode()
    request = urllib.request.Request(f"{MAILER}/mails", data=body, headers={"Idempotency-Key": order})
    urllib.request.urlopen(request, timeout=5).close()


def confirm(order, to):
    with psycopg.connect(DATABASE) as db:
        new = db.execute("INSERT INTO confirmations VALUES (%s) ON CONFLICT DO NOTHING RETURNING id", (order,))
        if new.fetchone() is None:
            return
        try:
            mail(order, to)
        except OSError as error:  # a mail must not fail an order
            print(f"no mail for {order}: {error}", flush=True)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            confirm(task["order"], task["to"])
            self.send_response(204)
        except (OSError, psycopg.Error) as error:  # the queue delivers it again
            self.log_message("failed: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
