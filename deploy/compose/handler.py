"""A handler that knows nothing of duplicates: every request takes effect. Put your own in its place."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

effects = count(1)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        answer = f'{{"effect": {next(effects)}}}\n'.encode()
        self.send_response(201)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


if __name__ == "__main__":
    ThreadingHTTPServer(("0.0.0.0", 3000), Handler).serve_forever()
