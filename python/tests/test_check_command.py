"""`semel check --celery` as a command: what it prints, and how it ends."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from .test_wheel_command import semel_command as semel_command

GOOD = """
from celery import Celery
import semel, semel.celery

app = Celery("shop", broker="{broker}", task_cls="semel.celery:Task")
app.conf.update(task_acks_late=True, task_reject_on_worker_lost=True, task_time_limit=120, worker_prefetch_multiplier=1)
app.conf.update({conf})
semel.celery.setup(app, semel.Semel("{store}"))

@app.task(name="shop.charge", once={once})
def charge(order): ...
"""
PLAIN = "\n@app.task(name='shop.report')\ndef report(): ...\n"
RABBITMQ = "amqp://h//"


def shop(
    broker: str = "redis://h/0", store: str = "postgres://h/semel", once: str = '"order"', conf: str = "", more: str = ""
) -> str:
    return GOOD.format(broker=broker, store=store, once=once, conf=conf) + more


class Check:
    """Runs the command in a directory that has these modules."""

    def __init__(self, command: list[str], directory: Path) -> None:
        self._command, self._directory = command, directory

    def __call__(self, module: str | None, *words: str) -> tuple[int, str, str]:
        if module is not None:
            (self._directory / "shop.py").write_text(module)
        command = [*self._command, "check", *words]
        ended = subprocess.run(command, cwd=self._directory, capture_output=True, text=True, timeout=60)
        assert "Traceback" not in ended.stderr, ended.stderr
        return ended.returncode, ended.stdout, ended.stderr


@pytest.fixture
def check(semel_command: list[str], tmp_path: Path) -> Check:
    return Check(semel_command, tmp_path)


@pytest.mark.parametrize("words", [("--celery", "shop:app"), ("--celery=shop:app",), ("--celery", "shop")])
def test_a_good_app_is_told_so(check: Check, words: tuple[str, ...]) -> None:
    assert check(shop(), *words) == (0, "proved   the settings fit together, for shop.charge\n", "")


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"store": "dir:./x"}, "the store dir:./x is for one process, and the prefork pool has several"),
        ({"store": "mysql://u:secret@h/x"}, "there is no store for mysql"),
        ({"once": '{"key": "order", "retention": "30m"}'}, "shop.charge remembers its outcome for 1800 s, and its message "
         "may come again after 3880 s"),
        ({"once": '{"key": "order", "retention": "200s", "lease": "1s"}', "conf": "task_time_limit=200", "broker": RABBITMQ},
         "shop.charge may run for 200 s, and its record is kept for 200 s only"),
    ],
)  # fmt: skip
def test_what_breaks_a_promise_ends_it_with_64(check: Check, settings: Any, line: str) -> None:
    ended, said, _ = check(shop(**settings), "--celery", "shop:app")
    assert ended == 64 and said.startswith(f"broken   {line}") and "proved" not in said and "secret" not in said, said


EARLY = "task_acks_late=False, task_time_limit=None, accept_content=['json', 'pickle'], worker_prefetch_multiplier=4"
SHORT = "task_reject_on_worker_lost=False, broker_transport_options={'visibility_timeout': 60}"
LONG = "task_time_limit=3600, task_acks_on_failure_or_timeout=False, worker_pool='threads'"


@pytest.mark.parametrize(
    ("settings", "lines"),
    [
        ({"conf": EARLY, "store": "memory:"}, [
            "warning  the store memory: forgets everything",
            "warning  accept_content lets pickle in",
            "warning  worker_prefetch_multiplier is over 1 on Redis",
            "warning  shop.charge is acknowledged before it runs",
            "warning  shop.charge has no time limit",
        ]),
        ({"conf": SHORT}, [
            "warning  shop.charge is lost when its pool process is killed",
            "warning  shop.charge may run for 120 s, and Redis delivers it again after 60 s",
        ]),
        ({"conf": LONG, "broker": RABBITMQ}, [
            "warning  shop.charge has acks_on_failure_or_timeout=False",
            "warning  shop.charge may run for 3600 s, and RabbitMQ ends a consumer",
            "warning  shop.charge has a time limit, and the threads pool does not enforce it",
        ]),
        ({"more": PLAIN}, [
            "note     shop.report does not say once: its duplicates run",
            "proved   the settings fit together, for shop.charge",
        ]),
        ({"once": "None"}, [
            "note     shop.charge does not say once: its duplicates run",
            "warning  no task says once: nothing is protected",
        ]),
    ],
)  # fmt: skip
def test_what_weakens_one_is_said_and_ends_it_with_0(check: Check, settings: Any, lines: list[str]) -> None:
    ended, said, _ = check(shop(**settings), "--celery", "shop:app")
    told = said.splitlines()
    assert (ended, len(told)) == (0, len(lines)), said
    assert all(line.startswith(expected) for line, expected in zip(told, lines)), said


def test_a_pool_that_is_named_takes_the_place_of_the_app_s(check: Check) -> None:
    ended, said, _ = check(shop(store="dir:./x"), "--celery", "shop:app", "--pool", "threads")
    assert ended == 0 and "broken" not in said and "the threads pool does not enforce it" in said


@pytest.mark.parametrize(
    ("module", "app", "message"),
    [
        (None, "nowhere:app", "semel: cannot import nowhere:app: ModuleNotFoundError: No module named 'nowhere'"),
        (shop(), "shop:other", "AttributeError: module 'shop' has no attribute 'other'"),
        (shop(), "shop:charge", "semel: shop:charge is not a Celery app"),
        ("import nothing_like_it", "shop:app", "No module named 'nothing_like_it' ("),
        ("1 / 0", "shop:app", "ZeroDivisionError: division by zero ("),
        ("raise SystemExit('DATABASE_URL is not set')", "shop:app", "SystemExit: DATABASE_URL is not set ("),
        ("app = (", "shop:app", "SyntaxError: '(' was never closed"),
        (shop(once='"payment"'), "shop:app", "names no parameter"),
        (shop().replace("semel.celery.setup", "print"), "shop:app", "call semel.celery.setup(app, semel.Semel(url))"),
    ],
)
def test_what_cannot_be_judged_is_said_plainly(check: Check, module: str | None, app: str, message: str) -> None:
    ended, said, why = check(module, "--celery", app)
    assert (ended, "proved" in said) == (64, False) and why.startswith("semel: ") and message in why, why


def test_wrong_arguments_end_as_those_of_the_rest_of_the_command(check: Check) -> None:
    ended, _, why = check(shop(), "--celery", "shop:app", "--json")
    assert ended == 64 and "unrecognized arguments: --json" in why
    ended, _, why = check(shop(), "--celery")
    assert ended == 64 and "expected one argument" in why


def test_a_check_without_celery_is_that_of_the_gate(check: Check) -> None:
    ended, _, why = check(None)
    assert ended == 64 and "there is no semel.toml and no --upstream" in why
