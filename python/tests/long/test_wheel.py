"""The built wheel, in environments with nothing else in them. The tests of the command run here on that of the wheel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ..test_wheel_command import (
    serve as serve,
    test_the_command_has_all_its_parts as test_the_command_has_all_its_parts,
    test_it_ends_with_the_exit_codes_of_the_program as test_it_ends_with_the_exit_codes_of_the_program,
    test_it_makes_keys as test_it_makes_keys,
    test_the_broker_serves_until_ctrl_c as test_the_broker_serves_until_ctrl_c,
    test_the_gate_drains_and_ends_with_0 as test_the_gate_drains_and_ends_with_0,
    test_dev_shows_one_effect_for_two_deliveries as test_dev_shows_one_effect_for_two_deliveries,
    test_ctrl_c_ends_what_waits_for_an_answer as test_ctrl_c_ends_what_waits_for_an_answer,
)
from .conftest import given

ONCE = """
import semel

for store in ("memory:", "dir:./store"):
    runs = []

    @semel.Semel(store, namespace="shop").once(key="order_id")
    def charge(order_id: str, cents: int) -> dict:
        runs.append(order_id)
        return {"order": order_id, "cents": cents}

    assert charge("A-1", 900) == charge(order_id="A-1", cents=900) == {"order": "A-1", "cents": 900}
    assert charge.outcome("A-1", 900) == semel.Replayed({"order": "A-1", "cents": 900})
    assert runs == ["A-1"]
print(semel.__file__)
"""
GOOD = """
from celery import Celery
import semel, semel.celery

app = Celery("shop", broker="amqp://h//", task_cls="semel.celery:Task")
semel.celery.setup(app, semel.Semel("postgres://h/semel"))

@app.task(once="order", acks_late=True, reject_on_worker_lost=True, time_limit=60)
def charge(order): ...
"""


def make(home: Path, *packages: str) -> Path:
    """The directory of the programs of an environment of its own."""
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    subprocess.run([home / "bin" / "pip", "install", "--quiet", *packages], check=True)
    return home / "bin"


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("clean") / "environment", given("SEMEL_TEST_WHEEL"))


@pytest.fixture
def semel_command(clean: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    # The package must come from the environment, not from this directory.
    monkeypatch.delenv("PYTHONPATH")
    return [str(clean / "semel")]


def test_the_wheel_works_without_anything_else(clean: Path, semel_command: list[str], tmp_path: Path) -> None:
    ended = subprocess.run([clean / "python", "-c", ONCE], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert Path(ended.stdout.strip()).is_relative_to(clean.parent)
    listed = subprocess.run([clean / "pip", "list", "--format", "freeze"], capture_output=True, text=True, check=True)
    assert {line.split("==")[0] for line in listed.stdout.split()} <= {"semel", "pip", "setuptools", "wheel"}


def test_it_says_when_celery_is_not_there(semel_command: list[str], tmp_path: Path) -> None:
    ended = subprocess.run(
        [*semel_command, "check", "--celery", "shop:app"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 64 and "cannot import Celery in this environment" in ended.stderr


def test_it_checks_an_app_beside_the_pinned_celery(semel_command: list[str], tmp_path: Path) -> None:
    requirements = (Path(__file__).parents[1] / "requirements.txt").read_text().split()
    (celery,) = [line for line in requirements if line.startswith("celery==")]
    programs = make(tmp_path / "environment", given("SEMEL_TEST_WHEEL"), celery)
    (tmp_path / "shop.py").write_text(GOOD)
    command = [str(programs / "semel"), "check", "--celery", "shop:app"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "") and "fit together, for shop.charge" in ended.stdout
