"""Celery workers as processes of their own."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

WITHIN = 60
_numbers = itertools.count()


class CeleryWorkers:
    """The workers of one app, which is a module in the directory ``home``."""

    def __init__(self, app: str, home: Path, environment: dict[str, str], logs: Path) -> None:
        self._app = app
        self._home = home
        self._environment = {**os.environ, **environment}
        self._logs = logs
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(
        self, pool: str = "prefork", concurrency: int = 2, *options: str, **environment: str
    ) -> subprocess.Popen[bytes]:
        number = len(self._processes)
        # A name of its own: on RabbitMQ two workers of one name do not start.
        command = [
            sys.executable, "-m", "celery", "-A", self._app, "worker", "--pool", pool, "-c", str(concurrency),
            "-n", f"w{os.getpid()}-{next(_numbers)}@%h", "--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "INFO", *options,
        ]  # fmt: skip
        environment = {**self._environment, **environment}
        with (self._logs / f"worker-{number}.log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=self._home, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        self._processes.append(process)
        return process

    def log(self) -> str:
        return "".join(path.read_text(errors="replace") for path in sorted(self._logs.glob("worker-*.log")))

    def until(self, what: Callable[[], Any], within: float = WITHIN) -> Any:
        deadline = time.monotonic() + within
        while True:
            found = what()
            if found:
                return found
            assert time.monotonic() < deadline, self.log()[-6000:]
            time.sleep(0.05)

    def get(self, result: Any) -> Any:
        try:
            return result.get(timeout=WITHIN)
        except TimeoutError:
            raise AssertionError(self.log()[-6000:]) from None

    def state(self, result: Any) -> Any:
        """The state once it is an end."""
        self.until(result.ready)
        return result.state

    def child_of(self, worker: subprocess.Popen[bytes]) -> list[int]:
        children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
        return [int(pid) for pid in children]

    def stop(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
