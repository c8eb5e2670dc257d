"""The ``semel`` command, as the package installs it: gate, broker, prover and all."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import Any, NoReturn

from . import _native

_NOTHING_WRONG, _BROKEN = 0, 64
"""The exit codes of `semel check`: a mistake that a person must fix is 64, in the arguments too."""


def main() -> None:
    """Runs the command and ends the process with its exit code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["check"] and any(word.split("=")[0] == "--celery" for word in arguments):
        sys.exit(_check_celery(arguments[1:]))
    # The command has handlers of its own; Python's would wait for the command to end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.main(["semel", *arguments]))


class _Parser(argparse.ArgumentParser):
    """Ends as the rest of the command does."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(_BROKEN, f"semel: {message}\n")


class _Mistake(Exception):
    """There is nothing to judge; the text says why."""


def _check_celery(arguments: list[str]) -> int:
    """``semel check --celery module:app``: whether the app's settings let its tasks keep their promise."""
    parser = _Parser(prog="semel check", description="Judges the settings of a Celery app; nothing is opened or sent.")
    parser.add_argument("--celery", required=True, metavar="MODULE:APP", help="the app, as `celery -A` takes it")
    parser.add_argument("--pool", help="the pool its workers use; worker_pool of the app by default")
    parsed = parser.parse_args(arguments)
    try:
        return _judge(_app(parsed.celery), parsed.pool)
    except _Mistake as mistake:
        print(f"semel: {mistake}", file=sys.stderr)
        return _BROKEN


def _app(name: str) -> Any:
    """The Celery app of this name, found as `celery -A` finds it."""
    import importlib
    import operator
    import os

    try:
        from celery import Celery
        from celery.app.utils import find_app
    except ImportError as error:
        raise _Mistake(f"cannot import Celery in this environment ({sys.prefix}): {error}") from None
    sys.path.insert(0, os.getcwd())
    module, _, attribute = name.partition(":")
    try:
        app = operator.attrgetter(attribute)(importlib.import_module(module)) if attribute else find_app(name)
    # A module of somebody else's may raise anything, and some end the process.
    except (Exception, SystemExit) as error:
        raise _Mistake(
            f"cannot import {name}: {type(error).__name__}: {error}{_place(error)}\n"
            f"run this where `celery -A {name}` works: in its directory, with its environment variables"
        ) from None
    if not isinstance(app, Celery):
        raise _Mistake(f"{name} is not a Celery app, but of the type {type(app).__name__}: name one as MODULE:APP")
    return app


def _place(error: BaseException) -> str:
    """Where a module raised; nothing for a module that is not there."""
    import traceback

    # An environment often lies in the directory of its app.
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(sys.path[0]) and sys.prefix not in frame.filename]
    return f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""


def _judge(app: Any, pool: str | None) -> int:
    from ._errors import ConfigError
    from .celery import check

    try:
        findings = check(app, pool=pool)
    except ConfigError as error:
        raise _Mistake(str(error)) from None
    for finding in findings:
        print(f"{'broken' if finding.is_error else 'warning':8} {finding.text}")
    own = [task for name, task in sorted(app.tasks.items()) if not name.startswith("celery.")]
    protected = [task for task in own if getattr(task, "once", None) is not None]
    for task in own:
        if task not in protected:
            print(f"{'note':8} {task.name} does not say once: its duplicates run")
    if not protected:
        print(f"{'warning':8} no task says once: nothing is protected")
    elif not findings:
        print(f"{'proved':8} the settings fit together, for {', '.join(task.name for task in protected)}")
    return _BROKEN if any(finding.is_error for finding in findings) else _NOTHING_WRONG
