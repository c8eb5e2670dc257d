"""The invoice pipeline from bucket to warehouse, stateless and recorded. Prints rows, effects and bills of both.

    bucket event → Pub/Sub → push → gate → consumer → model → landed answer → merge

Needs `semel` on the PATH, and `pip install duckdb`. Everything else is started here on free ports, and ends here.
"""

import base64
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import duckdb

HERE = Path(__file__).resolve().parent
TOPIC, SUBSCRIPTION = "projects/demo/topics/invoices", "projects/demo/subscriptions/invoices"

# What Pub/Sub may do to any message. The broker's choices are the same in every run.
FAULTS = ["duplicate=0.2", "duplicate-at-once=0.2", "lose-answer=0.2"]

START_S = 30


def written(name, generation):
    """What Cloud Storage publishes when an object is written."""
    return {"kind": "storage#object", "bucket": "invoices", "name": name, "generation": str(generation)}


EVENTS = [written(f"2026-11/{number:02}.pdf", 1) for number in range(11)] + [written("2026-11/00.pdf", 2)]
MESSAGES = EVENTS + EVENTS[:3]  # three are published again: another message, the same event


def main():
    print(f"{len(EVENTS)} invoices, {len(MESSAGES)} messages: {len(MESSAGES) - len(EVENTS)} are published again.\n")
    print(f"{'':<10}  deliveries  rows landed  effects  other answers  calls billed")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as home:  # on a disk: nothing lands in memory
        for way in ("stateless", "recorded"):
            deliveries, bills = deliver(way, Path(home))
            rows, effects, others = merge(Path(home, f"landing-{way}"))
            print(f"{way:<10}{deliveries:>12}{rows:>13}{effects:>9}{others:>15}{bills:>14}")
    print("\nThe merge removes second rows, whatever landed. It removes no second bill: only the records did.")


def deliver(way, home):
    """Publishes the messages and waits until all are acknowledged. How often was delivered, and how often billed."""
    with contextlib.ExitStack() as ends:
        start = lambda *words, **more: ends.enter_context(running(home, *words, **more))
        model = start(sys.executable, HERE / "model.py", ready="/bill")
        consumer = start(sys.executable, HERE / "consumer.py", MODEL_URL=model)
        faults = [word for fault in FAULTS for word in ("--fault", fault)]
        broker = start("semel", "broker", "--memory", *faults, "--listen", "ADDRESS", ready="/_semel/faults")
        flags = ["--config", HERE / f"semel-{way}.toml", "--upstream", consumer, "--listen", "ADDRESS"]
        flags += ["--admin", "127.0.0.1:0", "--store", f"dir:{home}/records-{way}"]
        with running(home, "semel", "gate", *flags, LANDING_URL=f"file:{home}/landing-{way}") as gate:
            ask("PUT", f"{broker}/v1/{TOPIC}")
            ask("PUT", f"{broker}/v1/{SUBSCRIPTION}", {"topic": TOPIC, "pushConfig": {"pushEndpoint": gate}})
            data = [{"data": base64.b64encode(json.dumps(event).encode()).decode()} for event in MESSAGES]
            ask("POST", f"{broker}/v1/{TOPIC}:publish", {"messages": data})
            ask("POST", f"{broker}/_semel/wait-idle", {"timeout": "60s"})
            deliveries = len(ask("GET", f"{broker}/_semel/history")["dispatches"])
        # The gate has ended, so its file is closed: readers take no other.
        return deliveries, sum(ask("GET", f"{model}/bill").values())


def merge(landing):
    """Loads what landed and merges it. How many rows, effects, and answers that differ from the one that counts."""
    db = duckdb.connect()
    db.execute(sql("ddl"))
    db.execute(sql("view"))
    columns = dict(db.execute("SELECT name, type FROM pragma_table_info('landing')").fetchall())
    files = f"read_json('{landing}/*.jsonl', format = 'newline_delimited', columns = {columns})"
    db.execute(f"INSERT INTO landing BY NAME SELECT * FROM {files}")
    db.execute("SET VARIABLE since = TIMESTAMPTZ '2000-01-01 00:00:00+00'")
    for _ in range(2):  # a merge that is repeated changes nothing
        db.execute(sql("merge"))
    both = "(SELECT delivery_id FROM {} EXCEPT SELECT delivery_id FROM {})".format
    assert one(db, f"SELECT count(*) FROM {both('effects', 'effects_view')}") == 0, "merged rows that should not be"
    assert one(db, f"SELECT count(*) FROM {both('effects_view', 'effects')}") == 0, "rows that were not merged"
    others = "SELECT count(DISTINCT (event_id, answer)) - count(DISTINCT event_id) FROM landing"
    return one(db, "SELECT count(*) FROM landing"), one(db, "SELECT count(*) FROM effects"), one(db, others)


def sql(part):
    words = ["semel", "warehouse", "sql", "--dialect", "duckdb", "--answer", "--part", part]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def one(db, question):
    return db.execute(question).fetchone()[0]


@contextlib.contextmanager
def running(home, *words, ready="/", **environment):
    """Starts a program on a free port and waits until it answers; its address. SIGTERM ends it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [f"127.0.0.1:{port}" if word == "ADDRESS" else str(word) for word in words]
    log = Path(home, f"{port}.log")
    environment = {**os.environ, "PORT": str(port), **environment}
    with log.open("w") as file:
        process = subprocess.Popen(words, env=environment, stdout=file, stderr=file)
    try:
        until_ready(process, f"http://127.0.0.1:{port}{ready}", log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(START_S)


def until_ready(process, url, log):
    for _ in range(START_S * 20):
        try:
            urllib.request.urlopen(url).close()
            return
        except urllib.error.HTTPError:
            return  # it answers
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    sys.exit(f"{process.args} does not start:\n{log.read_text()}")


def ask(method, url, body=None):
    data = None if body is None and method == "GET" else json.dumps(body or {}).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main()
