"""Sends a notification by mail, unless it was sent before. Wrong: it looks first, sends then, and notes it last.

Two deliveries at once both look before either has noted anything. And a crash after the mail leaves no note of it.
"""

import http.server
import json
import os
import urllib.request

import psycopg

DATABASE = os.environ["DATABASE_URL"]
MAILER = os.environ["MAILER_URL"]


def mail(notification, to):
    body = json.dumps({"notification": notification, "to": to}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{MAILER}/mails", data=body), timeout=5).close()


def notify(notification, to):
    with psycopg.connect(DATABASE, autocommit=True) as db:
        row = db.execute("SELECT sent FROM notifications WHERE id = %s", (notification,)).fetchone()
        if row and row[0]:
            return
        mail(notification, to)
        db.execute(
            "INSERT INTO notifications VALUES (%s, true) ON CONFLICT (id) DO UPDATE SET sent = true", (notification,)
        )


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            notify(task["notification"], task["to"])
            self.send_response(204)
        except (OSError, psycopg.Error) as error:  # the queue delivers it again
            self.log_message("failed: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
