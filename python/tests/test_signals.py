"""Signals: heard while a call is claimed and while it runs; while its outcome is recorded they wait."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Callable, Iterator

import pytest

import semel

from .conftest import Start, free_port, wait_for_port


class OwnRedis:
    """A Redis of the test's own, which can be stopped."""

    def __init__(self, directory: Path) -> None:
        self.port = port = free_port()
        self.url = f"redis://127.0.0.1:{port}/"
        command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(directory)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        wait_for_port(port)

    def has_unread(self) -> bool:
        """Whether somebody has sent what it has not read: by its sockets' receive queues."""
        port = f":{self.port:04X}"
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, _, _, queues, *_ = line.split()
            if local.endswith(port) and int(queues.split(":")[1], 16):
                return True
        return False

    def hold(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def go(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[OwnRedis]:
    server = OwnRedis(tmp_path)
    yield server
    server.go()
    server.process.terminate()
    server.process.wait(20)


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not what():
        assert time.monotonic() < deadline, what
        time.sleep(0.005)


def is_pending(process: subprocess.Popen[str], sent: signal.Signals) -> bool:
    """Whether a signal has not reached the process yet."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    masks = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd"))]
    return any(mask & (1 << (sent - 1)) for mask in masks)


class Called:
    """The program `interrupted.py`, up to its call."""

    def __init__(self, start: Start, redis: OwnRedis, namespace: str, phase: str) -> None:
        self.process = start("interrupted.py", redis.url, namespace, phase)
        self.expect("ready")

    def expect(self, line: str) -> None:
        assert self.process.stdout is not None
        said = self.process.stdout.readline().strip()
        assert said == line, (said, self.process.poll() is not None and self.process.communicate())

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()


@pytest.mark.parametrize(("sent", "says"), [(signal.SIGUSR1, "soft limit"), (signal.SIGINT, "interrupted")])
def test_a_signal_while_claiming_ends_the_call_and_nothing_ran(
    start: Start, redis: OwnRedis, namespace: str, sent: signal.Signals, says: str
) -> None:
    call = Called(start, redis, namespace, "claiming")
    redis.hold()
    call.go()
    call.expect("calling")
    until(redis.has_unread)  # the claim is on its way
    began = time.monotonic()
    call.process.send_signal(sent)
    call.expect(says)
    assert time.monotonic() - began < 5
    redis.go()
    call.go()  # and waits until what was claimed for nobody is given back
    call.expect("running")
    call.expect("again Ran(value='done', recorded=True)")


def test_a_signal_while_running_leaves_the_work_in_doubt(start: Start, redis: OwnRedis, namespace: str) -> None:
    call = Called(start, redis, namespace, "running")
    call.go()
    call.expect("calling")
    call.expect("running")
    call.process.send_signal(signal.SIGUSR1)
    call.expect("soft limit")
    call.go()
    assert call.process.stdout is not None
    assert "Parked(" in call.process.stdout.readline()


def test_a_signal_while_recording_does_not_undo_the_record(start: Start, redis: OwnRedis, namespace: str) -> None:
    call = Called(start, redis, namespace, "recording")
    call.go()
    call.expect("calling")
    call.expect("running")
    redis.hold()
    call.go()
    call.expect("recording")
    until(redis.has_unread)  # the outcome is on its way
    call.process.send_signal(signal.SIGUSR1)
    until(lambda: not is_pending(call.process, signal.SIGUSR1))
    redis.go()
    call.expect("value done")
    call.go()
    call.expect("again Replayed(value='done')")
    out, err = call.process.communicate(timeout=20)
    assert "had been recorded, and is dropped" in err, (out, err)


@pytest.mark.parametrize("how", ["plain", "multiprocessing"])
def test_a_process_that_ends_waits_for_the_store_to_take_what_ran(
    start: Start, redis: OwnRedis, namespace: str, how: str
) -> None:
    process = start("exits.py", redis.url, namespace, how)
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline() == "running\n"
    redis.hold()
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "outcome Ran(value='done', recorded=False)\n"
    assert process.stdout.readline() == "ending\n"
    assert process.poll() is None, "it must wait for the store"
    redis.go()
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0 and "is not recorded" not in err, err
    charge = semel.Semel(redis.url, namespace=namespace).once(key="order_id", name="charge")(_never)
    assert charge.outcome("A-1") == semel.Replayed("done")


def _never(order_id: str) -> str:
    raise AssertionError("it ran already")


def test_what_the_store_never_took_is_named(start: Start, redis: OwnRedis, namespace: str) -> None:
    process = start("exits.py", redis.url, namespace, "plain")
    assert process.stdin is not None and process.stdout is not None
    assert process.stdout.readline() == "running\n"
    redis.hold()
    process.stdin.write("\n")
    process.stdin.flush()
    out, err = process.communicate(timeout=40)
    assert "is not recorded: it ran (fence" in err and "semel records resolve v1_" in err
