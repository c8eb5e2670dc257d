"""Confirms an order by mail, once. It is remembered when the mail has gone; until then each attempt has one key."""

import http.server
import json
import os
import urllib.request

import redis

MAILER = os.environ["MAILER_URL"]
STORE = redis.Redis.from_url(os.environ["REDIS_URL"])


def mail(order, to):
    body = json.dumps({"notification": order, "to": to}).encode()
    request = urllib.request.Request(f"{MAILER}/mails", data=body, headers={"Idempotency-Key": order})
    urllib.request.urlopen(request, timeout=5).close()


def confirm(order, to):
    if STORE.get(f"confirmed:{order}"):
        return
    mail(order, to)
    STORE.set(f"confirmed:{order}", 1)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            confirm(task["order"], task["to"])
            self.send_response(204)
        except (OSError, redis.RedisError) as error:  # the queue delivers it again
            self.log_message("failed: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
