"""The pytest plugin: the fixture ``deliver``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ._deliver import Deliver


@pytest.fixture
def deliver(tmp_path: Path) -> Deliver:
    """Delivers calls as an at-least-once world does, on a store of the test's own: a directory, or the one that
    ``SEMEL_TEST_STORE`` names."""
    return Deliver(tmp_path / "semel", os.environ.get("SEMEL_TEST_STORE"))
