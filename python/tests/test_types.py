"""The package passes pyright's strict mode, as its users have it who check their own code so. mypy has a step of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

PYRIGHT = "1.1.414"
_PACKAGE = Path(__file__).parents[1]


def _pyright() -> Path:
    """Fetched once, like the packages of Python."""
    home = _PACKAGE.parent / "target" / f"pyright-{PYRIGHT}"
    program = home / "node_modules" / ".bin" / "pyright"
    if not program.exists():
        npm = shutil.which("npm")
        assert npm is not None, "npm is not installed: pyright is a program for Node"
        home.mkdir(parents=True, exist_ok=True)
        subprocess.run([npm, "install", "--silent", "--no-save", "--prefix", home, f"pyright@{PYRIGHT}"], check=True)
    return program


def test_pyright_finds_nothing_in_strict_mode() -> None:
    found = subprocess.run([_pyright(), "--project", _PACKAGE], capture_output=True, text=True, timeout=110)
    assert found.returncode == 0, found.stdout + found.stderr
