"""Google's Firestore emulator: the one that FIRESTORE_EMULATOR_HOST names, or one of the tests' own."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, Optional

import pytest

from .conftest import free_port, wait_for_port

_PACKAGE = "google-cloud-cli-firestore-emulator"
_CLASS = "com.google.cloud.datastore.emulator.firestore.CloudFirestore"
NOT_RUN = f"NOT RUN: Firestore in Python: no emulator (install {_PACKAGE} and Java, or set FIRESTORE_EMULATOR_HOST)"


@contextmanager
def emulator() -> Iterator[str]:
    """Its address. Without one the test is skipped, and a line at the end says so; with SEMEL_TEST_REQUIRE=firestore it
    fails."""
    named = os.environ.get("FIRESTORE_EMULATOR_HOST")
    if named:
        yield named
        return
    java, jar = _java(), _jar()
    if not java or not jar:
        if "firestore" in os.environ.get("SEMEL_TEST_REQUIRE", "").split(","):
            pytest.fail(NOT_RUN)
        pytest.skip(NOT_RUN)
    port = free_port()
    words = [java, "-cp", jar, _CLASS, "--host=127.0.0.1", f"--port={port}"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for_port(port)
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()


def _java() -> Optional[str]:
    home = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")


def _jar() -> Optional[str]:
    if not shutil.which("dpkg"):
        return None
    listed = subprocess.run(["dpkg", "-L", _PACKAGE], capture_output=True, text=True).stdout
    return next((line for line in listed.splitlines() if line.endswith("cloud-firestore-emulator.jar")), None)
