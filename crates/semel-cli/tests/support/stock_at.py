"""The stock example, stopped at the point that the header X-At names, or misbehaving as X-How says."""

import http.server
import os
import sys
import threading

import psycopg

import points

sys.path.insert(0, os.environ["EXAMPLE"])
import handler  # noqa: E402

here = threading.local()


def reach(point):
    points.reach(point, here.request.headers["X-At"])


def how():
    return here.request.headers["X-How"]


class Connection(psycopg.Connection):
    def execute(self, query, *args, **kwargs):
        completes = "semel.complete" in query
        if completes:
            reach("before-complete")
            if how() == "answer-then-complete":
                here.request.answer_early("before-late-complete")
        result = super().execute(query, *args, **kwargs)
        if completes:
            reach("before-commit")
        return result

    def commit(self):
        if how() == "roll-back-then-200":
            return self.rollback()
        if how() == "answer-then-commit":
            here.request.answer_early("before-late-commit")
        super().commit()
        reach("before-answer")


handler.psycopg.connect = Connection.connect


class Handler(handler.Handler):
    def do_POST(self):
        here.request = self
        self.answered = False
        reach("begun")
        super().do_POST()

    def answer_early(self, then):
        self.answer(200, {"said": "too early"})
        points.reach(then, then)

    def answer(self, status, answer):
        if self.answered:
            return
        self.answered = True
        if how() == "commit-then-500":
            self.send_response(500)
            self.send_header("Content-Type", "text/plain")
            self.send_header("X-Broken", "yes")
            self.send_header("Content-Length", "6")
            self.end_headers()
            self.wfile.write(b"broken")
        else:
            super().answer(status, answer)
        reach("after-answer")


http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
