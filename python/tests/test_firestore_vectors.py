"""What completion and ``once`` write is what ``vectors/firestore.json`` says, as in Rust and Node, where it is read too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from semel import Error, Stale
from semel._firestore_records import Already, completed, once_digest, outcome, remembered

from .firestore_documents import VECTORS, as_document

_REFUSALS = {"stale": Stale, "already": Already}


def _each(list_name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("vector", VECTORS[list_name], ids=lambda vector: vector["name"])


@_each("outcomes")
def test_outcome(vector: dict[str, Any]) -> None:
    body = vector["body"] * vector.get("body_times", 1)
    if "refused" in vector:
        with pytest.raises(Error):
            outcome(vector["status"], vector["headers"], body)
    else:
        assert outcome(vector["status"], vector["headers"], body).hex() == vector["result"]


@_each("complete")
def test_completion(vector: dict[str, Any]) -> None:
    result = outcome(vector["status"], vector["headers"], vector["body"])
    asked = (vector["key"], as_document(vector["before"]), vector["fence"], result, vector["now"])
    if "refused" in vector:
        with pytest.raises(_REFUSALS[vector["refused"]]):
            completed(*asked)
    else:
        assert completed(*asked) == as_document(vector["writes"])


def test_run_that_failed_for_good_is_stale() -> None:
    running = VECTORS["complete"][0]
    with pytest.raises(Stale):
        completed(running["key"], {**running["before"], "state": 3}, running["fence"], b"", running["now"])


@_each("once")
def test_once(vector: dict[str, Any]) -> None:
    digest = once_digest(vector["text"])
    assert "v1_" + digest.hex() == vector["id"]
    written = remembered(digest, as_document(vector["before"]), vector["keep"], vector["now"])
    assert (written is not None) == vector["answer"]
    assert written == as_document(vector.get("document"))


def test_set_up_exempts_every_field_but_the_searched_one_from_indexes() -> None:
    written = {name for vector in VECTORS["records"] for name in vector["document"]} | {"parts", "part_id"}
    path = Path(__file__).parents[2] / "deploy" / "firestore" / "firestore.indexes.json"
    overrides = [it for it in json.loads(path.read_text())["fieldOverrides"] if it["collectionGroup"] == "semel_records"]
    assert {it["fieldPath"] for it in overrides} == written
    assert [it["fieldPath"] for it in overrides if it["indexes"]] == ["state"]
    assert [it["fieldPath"] for it in overrides if it.get("ttl")] == ["delete_at"]


def test_text_without_utf_8_is_refused() -> None:
    with pytest.raises(Error, match="surrogate"):
        once_digest("half \ud800")
