"""Handlers that are odd in one way each; the first word says which. All keep what they take in the table `taken`."""

import collections
import http.server
import json
import os
import socket
import sys
import threading
import time

import psycopg

DATABASE = os.environ["DATABASE_URL"]
HOST = os.environ.get("HOST", "127.0.0.1")
SEEN = collections.Counter()
QUEUES = collections.defaultdict(threading.Lock)


def run(sql, *values, url=DATABASE):
    with psycopg.connect(url, autocommit=True) as db:
        found = db.execute(sql, values)
        return found.fetchall() if found.description else []


def late(order, _):
    """WRONG: takes every arrival, but a second one of the same order only after 0.4 s, in the background."""
    begun = threading.Event()

    def take():
        with QUEUES[order]:
            run("INSERT INTO taken VALUES (%s)", order)
            begun.set()
            time.sleep(0.4)

    threading.Thread(target=take, daemon=True).start()
    begun.wait(0.05)
    return 200


def inbox(order, _):
    """RIGHT: writes the order down; a worker that looks twice a second takes it, in one statement."""
    run("INSERT INTO inbox VALUES (%s) ON CONFLICT DO NOTHING", order)
    return 200


def work():
    while True:
        time.sleep(0.6)
        run("INSERT INTO taken SELECT name FROM inbox EXCEPT SELECT name FROM taken")


def refuses(order, _):
    """WRONG: takes an order once, and calls its duplicate an error."""
    try:
        run("INSERT INTO taken VALUES (%s)", order)
        return 200
    except psycopg.errors.UniqueViolation:
        return 500


def dies(order, _):
    """WRONG: takes an order once, and ends at its third arrival."""
    SEEN[order] += 1
    if SEEN[order] == 3:
        os._exit(3)
    run("INSERT INTO taken VALUES (%s) ON CONFLICT DO NOTHING", order)
    return 200


def leases(order, _):
    """RIGHT: claims an order for a second, and refuses others meanwhile."""
    claimed = run(
        "INSERT INTO claims VALUES (%s, now() + interval '1 second') ON CONFLICT (name) DO UPDATE"
        " SET until = excluded.until WHERE claims.until < now() RETURNING name",
        order,
    )
    if not claimed:
        return 503
    run("INSERT INTO taken VALUES (%s) ON CONFLICT DO NOTHING", order)
    run("DELETE FROM claims WHERE name = %s", order)
    return 200


def refuses_first(order, _):
    """WRONG: refuses the first arrival and takes all others."""
    SEEN[order] += 1
    if SEEN[order] == 1:
        return 503
    run("INSERT INTO taken VALUES (%s)", order)
    return 200


def unnamed(order, _):
    """WRONG: takes an order once, but one without a name each time."""
    run("INSERT INTO taken VALUES (%s) ON CONFLICT DO NOTHING", order)
    return 200


def by_header(order, key):
    """WRONG: takes a request once, but one without a key each time."""
    if key is None or run("INSERT INTO keys VALUES (%s) ON CONFLICT DO NOTHING RETURNING name", key):
        run("INSERT INTO taken VALUES (%s)", order)
    return 200


def crowd(order, _):
    """WRONG: takes an order once, unless five of it are there at the same time."""
    SEEN[order] += 1
    time.sleep(0.15)
    if SEEN[order] >= 5:
        run("INSERT INTO taken VALUES (%s)", order)
    else:
        with QUEUES["all"]:
            run("INSERT INTO taken SELECT %s WHERE NOT EXISTS (SELECT FROM taken WHERE name = %s)", order, order)
    return 200


def double_fork(order, _):
    """RIGHT, and leaves a daemon behind at every start."""
    run("INSERT INTO taken VALUES (%s) ON CONFLICT DO NOTHING", order)
    return 200


def falls_silent(order, _):
    """RIGHT, and seen on the wire only twice."""
    SEEN["all"] += 1
    if SEEN["all"] <= 2:
        run("SELECT name FROM taken WHERE name = %s", order)
    run("INSERT INTO taken VALUES (%s) ON CONFLICT DO NOTHING", order, url=os.environ["UNPROXIED"])
    return 200


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(globals()[sys.argv[1]](body.get("order"), self.headers["Idempotency-Key"]))
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
    address_family = socket.AF_INET6 if HOST == "::1" else socket.AF_INET


def leave_daemon():
    """Forks twice and begins a session of its own, as daemons do, and notes who that is."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open(os.environ["DAEMONS"], "a") as file:
                file.write(f"{os.getpid()}\n")
            os.execvp("sleep", ["sleep", "600"])
        os._exit(0)
    os.wait()


if sys.argv[1] == "double_fork":
    leave_daemon()
if sys.argv[1] == "inbox":
    threading.Thread(target=work, daemon=True).start()
Server((HOST, int(os.environ["PORT"])), Handler).serve_forever()
