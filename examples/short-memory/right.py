"""Pays a wage, once. The key is kept for longer than the queue delivers again."""

import http.server
import json
import os

import redis

STORE = redis.Redis.from_url(os.environ["REDIS_URL"])
REMEMBERED_SECONDS = 7 * 24 * 3600  # the queue keeps a task for at most a day

# One script: the key and the payment are written together or not at all.
PAY = STORE.register_script(
    """
    if redis.call('SET', KEYS[1], 'paid', 'NX', 'EX', ARGV[1]) then
        redis.call('RPUSH', KEYS[2], ARGV[2])
    end
    """
)


def pay(wage, cents):
    PAY(keys=[f"wage-key:{wage}", f"wage:{wage}"], args=[REMEMBERED_SECONDS, cents])


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            pay(task["wage"], task["cents"])
            self.send_response(204)
        except redis.RedisError as error:  # the queue delivers it again
            self.log_message("failed: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
