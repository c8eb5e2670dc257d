"""Forks: a child has a core of its own, and never waits for its parent's threads."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import semel

from .conftest import Start, free_port, wait_for_port


@pytest.mark.parametrize(("how", "count"), [("os", 5), ("busy-os", 40), ("multiprocessing", 5), ("first-use", 1)])
def test_children_of_a_fork_work(start: Start, redis_url: str, namespace: str, how: str, count: int) -> None:
    process = start("forks.py", redis_url, namespace, how, count)
    out, err = process.communicate(timeout=60)
    assert (out, process.returncode) == ("fine\n", 0), err


def test_a_directory_store_is_refused_in_a_forked_child(tmp_path: Path, namespace: str) -> None:
    shop = semel.Semel(f"dir:{tmp_path / 'store'}", namespace=namespace)

    @shop.once
    def charge() -> int:
        return os.getpid()

    assert charge() == os.getpid()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            charge()
        except BaseException as error:
            os.write(writer, repr(error).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    message = os.read(reader, 65536).decode()
    assert message.startswith("ConfigError") and "use postgres:// or redis:// for several processes" in message
    assert charge() == os.getpid()


def test_a_child_cannot_end_its_parents_run(shared: semel.Semel) -> None:
    @shared.once(key="order_id")
    def charge(order_id: str) -> str:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                semel.step("mail", lambda step: "child")
            except BaseException as error:
                os.write(writer, str(error).encode())
            os._exit(0)
        os.close(writer)
        os.waitpid(pid, 0)
        return os.read(reader, 65536).decode()

    assert "belongs to process" in charge("A-1")


def test_a_step_that_forks_is_ended_by_the_process_that_began_it(shared: semel.Semel) -> None:
    reader, writer = os.pipe()
    children = []

    def fork(step: semel.StepInfo) -> str:
        children.append(os.fork())
        return "child" if children[0] == 0 else "parent"

    @shared.once(key="order_id")
    def charge(order_id: str) -> str:
        try:
            return semel.step("mail", fork)
        except BaseException as error:
            os.write(writer, str(error).encode())
            raise
        finally:
            if children[0] == 0:
                os._exit(0)

    assert charge("A-1") == "parent"
    os.waitpid(children[0], 0)
    assert "this step belongs to process" in os.read(reader, 65536).decode()


def test_gunicorn_with_preload_serves(redis_url: str, namespace: str, tmp_path: Path) -> None:
    """The master uses the store before it forks its workers."""
    import sys
    import urllib.request

    (tmp_path / "app.py").write_text(
        "import os, semel\n"
        f"shop = semel.Semel({redis_url!r}, namespace={namespace!r}, cache=0)\n"
        "@shop.once(key='n', name='charge')\n"
        "def charge(n): return os.getpid()\n"
        "charge('master')\n"
        "def app(environ, start_response):\n"
        "    start_response('200 OK', [])\n"
        "    return [f\"{charge('master')} {charge(environ['PATH_INFO'])} {os.getpid()}\".encode()]\n"
    )
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--preload", "-w", "2", "-b", f"127.0.0.1:{port}", "app:app"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(port)
        for number in range(6):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{number}", timeout=20) as answer:
                master, own, worker = answer.read().decode().split()
            assert own == worker and master != worker
    finally:
        process.terminate()
        assert process.wait(30) == 0
