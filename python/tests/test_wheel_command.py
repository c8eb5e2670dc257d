"""The `semel` command that the package brings: it serves, and ends, as the program does that has no Python.

The same tests run on the command of a built wheel, in `long/test_wheel.py`.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from .conftest import free_port, wait_for_port

Serve = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def semel_command() -> list[str]:
    """What the script `semel` of an installed package does."""
    return [sys.executable, "-c", "from semel._command import main; main()"]


@pytest.fixture
def serve(semel_command: list[str], tmp_path: Path) -> Iterator[Serve]:
    """Starts the command and waits until it listens on a port; what still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def serve(port: int, *words: str) -> subprocess.Popen[str]:
        with (tmp_path / f"{port}.log").open("w") as log:
            process = subprocess.Popen([*semel_command, *words], stdout=log, stderr=log, text=True, cwd=tmp_path)
        started.append(process)
        wait_for_port(port)
        return process

    yield serve
    for process in started:
        process.kill()
        process.wait()


def ask(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=20) as answer:
        return json.loads(answer.read() or b"null")


def run(command: list[str], *words: str, typed: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*command, *words], capture_output=True, text=True, input=typed, timeout=60)


def test_the_command_has_all_its_parts(semel_command: list[str]) -> None:
    ended = run(semel_command, "--help")
    assert ended.returncode == 0
    for part in "dev broker gate prove init check key migrate records letters completions".split():
        assert f"\n  {part} " in ended.stdout
    assert run(semel_command, "--version").stdout.startswith("semel 0.")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("nonsense", 64),
        ("check --config nowhere.toml", 64),
        ("gate --config nowhere.toml", 64),
        ("broker history --url http://127.0.0.1:1", 69),
        ("letters list --admin http://127.0.0.1:1", 69),
        ("prove nowhere.toml", 2),
        ("prove --nonsense", 2),
    ],
)
def test_it_ends_with_the_exit_codes_of_the_program(semel_command: list[str], words: str, code: int) -> None:
    ended = run(semel_command, *words.split())
    assert ended.returncode == code and "Traceback" not in ended.stderr, ended.stderr


def test_it_makes_keys(semel_command: list[str]) -> None:
    ended = run(semel_command, "key", "--namespace", "shop", "--rule", "/order_id", typed='{"order_id": 7.0}')
    assert ended.returncode == 0 and ended.stdout


def test_the_broker_serves_until_ctrl_c(serve: Serve) -> None:
    port = free_port()
    broker, url = serve(port, "broker", "--listen", f"127.0.0.1:{port}"), f"http://127.0.0.1:{port}"
    queue = "projects/demo/locations/local/queues/orders"
    assert ask(f"{url}/v2/projects/demo/locations/local/queues", {"name": queue})["name"] == queue
    task = ask(f"{url}/v2/{queue}/tasks", {"task": {"httpRequest": {"url": "http://127.0.0.1:1/", "body": "aGk="}}})
    assert task["name"].startswith(f"{queue}/tasks/")
    broker.send_signal(signal.SIGINT)
    assert broker.wait(30) == 0


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_gate_drains_and_ends_with_0(serve: Serve, tmp_path: Path, end: signal.Signals) -> None:
    port, admin = free_port(), free_port()
    words = ["--upstream", "http://127.0.0.1:1", "--store", f"dir:{tmp_path / 'store'}"]
    gate = serve(port, "gate", *words, "--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}")
    with urllib.request.urlopen(f"http://127.0.0.1:{admin}/readyz", timeout=20) as answer:
        assert answer.status == 200
    gate.send_signal(end)
    assert gate.wait(30) == 0
    assert f"{end.name}: draining" in (tmp_path / f"{port}.log").read_text()


def test_dev_shows_one_effect_for_two_deliveries(serve: Serve) -> None:
    gate, broker = free_port(), free_port()
    dev = serve(broker, "dev", "--port", str(gate), "--broker-port", str(broker))
    wait_for_port(gate)
    queue = f"http://127.0.0.1:{broker}/v2/projects/demo/locations/local/queues/orders/tasks"
    ask(queue, {"task": {"httpRequest": {"url": f"http://127.0.0.1:{gate}/charge", "body": "eyJvcmRlciI6ICJBLTEifQ=="}}})
    ask(f"http://127.0.0.1:{broker}/_semel/wait-idle", {})
    assert ask(f"http://127.0.0.1:{gate}/ledger") == {"effects_by_order": {"A-1": 1}}
    dev.send_signal(signal.SIGINT)
    assert dev.wait(30) == 0


def test_ctrl_c_ends_what_waits_for_an_answer(semel_command: list[str]) -> None:
    """Nothing in the command listens for it there, so it ends it as it ends any program."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(40)
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        waits = subprocess.Popen([*semel_command, "broker", "wait-idle", "--url", address])
        connection, _ = silent.accept()
        with connection:
            assert connection.recv(1)
            waits.send_signal(signal.SIGINT)
            assert waits.wait(30) == -signal.SIGINT
