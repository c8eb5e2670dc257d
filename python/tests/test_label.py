"""Records say which call they are of: the command finds one by its arguments, without a gate."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import Any

import semel

SEMEL = [sys.executable, "-c", "from semel._command import main; main()"]


def command(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*SEMEL, *words], capture_output=True, text=True, timeout=60)


def label(store: str, key: str) -> Any:
    shown = command("records", "show", key, "--store", store, "--json")
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout)["label"]


def test_a_call_is_found_by_its_arguments(database: str, namespace: str) -> None:
    shop = semel.Semel(database, namespace=namespace)

    @shop.once(key=["order_id", "/buyer/id"], name="charge")
    def charge(order_id: str, buyer: dict[str, int]) -> str:
        return "done"

    charge("A-1", {"id": 7})
    found = command("find", "--store", database, "--namespace", namespace, "--route", "charge", "order_id=A-1", "buyer/id=7")
    assert found.returncode == 0, found.stderr
    assert "order_id A-1" in found.stdout and "buyer/id 7" in found.stdout, found.stdout
    shown = label(database, charge.key("A-1", {"id": 7}))
    assert (shown["route"], shown["source"]) == ("charge", "python")
    assert shown["gate"] == f"{socket.gethostname()[:40]}:{os.getpid()}"


def test_a_private_function_says_nothing_of_its_arguments(database: str, namespace: str) -> None:
    shop = semel.Semel(database, namespace=namespace)

    @shop.once(key="card", private=True, name="charge")
    def charge(card: str) -> str:
        return "done"

    charge("4111-1111")
    shown = label(database, charge.key("4111-1111"))
    assert shown["route"] == "charge"
    assert "4111" not in json.dumps(shown)
