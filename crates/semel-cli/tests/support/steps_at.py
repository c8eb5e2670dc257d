"""The steps example, stopped after the step that the header X-At names."""

import http.server
import os
import sys

import points

sys.path.insert(0, os.environ["EXAMPLE"])
import handler  # noqa: E402

plain = handler.step


class Handler(handler.Handler):
    def do_POST(self):
        def step(steps, name, do):
            result = plain(steps, name, do)
            points.reach(f"after-{name}", self.headers["X-At"])
            return result

        handler.step = step
        super().do_POST()


http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
