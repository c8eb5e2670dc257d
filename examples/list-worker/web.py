"""Takes orders and puts them on a list, for a worker to write into the books."""

import http.server
import json
import os

import redis

STORE = redis.Redis.from_url(os.environ["REDIS_URL"])


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        task = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            STORE.rpush(f"{os.environ['LIST']}:new", task["order"])
            self.send_response(204)
        except redis.RedisError as error:  # the queue delivers it again
            self.log_message("failed: %s", error)
            self.send_response(503)
        self.end_headers()


if __name__ == "__main__":
    http.server.ThreadingHTTPServer.request_queue_size = 128
    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 3000))), Handler).serve_forever()
