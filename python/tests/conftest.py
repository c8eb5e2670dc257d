"""What the tests share: a store of each kind, and programs that are run as processes of their own."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any, Callable, Iterator

import psycopg
import pytest

import semel

PROGRAMS = Path(__file__).parent / "programs"
_numbers = itertools.count()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_for_port(port: int, within: float = 40) -> None:
    """Waits until somebody listens."""
    deadline = time.monotonic() + within
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 5).close()
            return
        except OSError:
            assert time.monotonic() < deadline, f"nobody listens on port {port}"
            time.sleep(0.05)


def _given(name: str) -> str:
    url = os.environ.get(name)
    assert url, f"{name} is not set: run the tests with `cargo xtask test --only python`, or start `cargo xtask servers`"
    return url


@pytest.fixture
def redis_url() -> str:
    return _given("SEMEL_TEST_REDIS_URL")


@pytest.fixture
def database() -> str:
    """A PostgreSQL database of the test's own."""
    base, name = _given("SEMEL_TEST_POSTGRES_URL"), f"python_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(base, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return base.rsplit("/", 1)[0] + "/" + name


@pytest.fixture(scope="session")
def firestore_host() -> Iterator[str]:
    """The address of Google's emulator."""
    from .emulator import emulator

    with emulator() as host:
        yield host


@pytest.fixture
def firestore_project(firestore_host: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A project of the test's own in the emulator, for clients of this process and of those that it starts."""
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", firestore_host)
    return f"test-{uuid.uuid4().hex[:24]}"


@pytest.fixture(params=["memory", "dir", "redis", "postgres", "firestore"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "firestore":
        return f"firestore://{request.getfixturevalue('firestore_project')}"
    if request.param == "redis":
        return str(request.getfixturevalue("redis_url"))
    if request.param == "postgres":
        return str(request.getfixturevalue("database"))
    return "memory:" if request.param == "memory" else f"dir:{tmp_path / 'store'}"


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """Keeps tests apart that share a server."""
    return f"{request.node.name[:60]}-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def shop(namespace: str) -> semel.Semel:
    return semel.Semel("memory:", namespace=namespace)


@pytest.fixture
def shared(redis_url: str, namespace: str) -> semel.Semel:
    """A store that other processes share."""
    return semel.Semel(redis_url, namespace=namespace, cache=0)


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a program of ``tests/programs`` as a process of its own; what still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(program: str, *arguments: Any, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-X", "dev", "-W", "error::DeprecationWarning", PROGRAMS / program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, **environment},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What could not be run for want of a server is said at the end, once."""
    reasons = {report.longrepr[2] for report in terminalreporter.getreports("skipped") if isinstance(report.longrepr, tuple)}
    for reason in sorted(reasons):
        if "NOT RUN" in reason:
            terminalreporter.write_line(reason.removeprefix("Skipped: "))
