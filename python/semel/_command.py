"""The ``semel`` command, as the package installs it: gate, broker, prover and all."""

from __future__ import annotations

import signal
import sys

from . import _native

_NOTHING_WRONG, _BROKEN = 0, 64


def main() -> None:
    """Runs the command and ends the process with its exit code."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["check"] and "--celery" in arguments:
        sys.exit(_check_celery(arguments[1:]))
    # The command has handlers of its own; Python's would wait for the command to end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.main(["semel", *arguments]))


def _check_celery(arguments: list[str]) -> int:
    """``semel check --celery module:app``: whether the app's settings let its tasks keep their promise."""
    import argparse
    import importlib
    import os

    from .celery import check

    parser = argparse.ArgumentParser(prog="semel check")
    parser.add_argument("--celery", required=True, metavar="MODULE:APP", help="the Celery app to check")
    parser.add_argument("--pool", help="the pool its workers use; worker_pool of the app by default")
    parsed = parser.parse_args(arguments)
    sys.path.insert(0, os.getcwd())
    module, _, name = parsed.celery.partition(":")
    app = getattr(importlib.import_module(module), name or "app")
    findings = check(app, pool=parsed.pool)
    for finding in findings:
        print(f"{'broken' if finding.is_error else 'warning'}: {finding.text}")
    if not findings:
        print("nothing to say: the settings fit together")
    return _BROKEN if any(finding.is_error for finding in findings) else _NOTHING_WRONG
