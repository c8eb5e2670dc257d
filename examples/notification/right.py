"""Sends a notification by mail, once: the gate lets one delivery run, and the mail service knows its key.

A run that died may have sent the mail or not. The next one sends it again under the same key, and the mail service,
which keeps keys, sends nothing twice. Only Python's standard library is needed.
"""

import http.server
import json
import os
import urllib.request

MAILER = os.environ["MAILER_URL"]


def mail(notification, to, key):
    body = json.dumps({"notification": notification, "to": to}).encode()
    mail = urllib.request.Request(f"{MAILER}/mails", data=body, headers={"Idempotency-Key": key})
    urllib.request.urlopen(mail, timeout=5).close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            # The gate's key of this work: the same at each attempt.
            mail(task["notification"], task["to"], self.headers["Idempotency-Key"])
            self.send_response(204)
        except OSError as error:  # the queue delivers it again
            self.log_message("failed: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
