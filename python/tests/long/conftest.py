"""What takes too long for every change: `cargo xtask test --long --only python`."""

from __future__ import annotations

import os

import pytest

collect_ignore_glob = [] if os.environ.get("SEMEL_TEST_LONG") else ["test_*.py"]


def given(name: str) -> str:
    value = os.environ.get(name)
    assert value, f"{name} is not set: run the tests with `cargo xtask test --long --only python`"
    return value


@pytest.fixture
def rabbitmq_url() -> str:
    return given("SEMEL_TEST_RABBITMQ_URL")


@pytest.fixture
def on_rabbitmq(rabbitmq_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Celery's own variable takes the place of every app's broker, in this process and in those that it starts."""
    monkeypatch.setenv("CELERY_BROKER_URL", rabbitmq_url)
