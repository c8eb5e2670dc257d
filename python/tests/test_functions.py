"""Functions of functions-framework, called as their senders call them."""

from __future__ import annotations

import base64
import json
import logging
from typing import Any

import functions_framework
import pytest

import semel
import semel.functions

TASK = {"X-CloudTasks-TaskName": "t1", "X-CloudTasks-QueueName": "orders", "Content-Type": "application/json"}


@pytest.fixture
def client(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of the functions of a source file, as the framework serves them."""

    def serve(source: str, target: str, kind: str) -> Any:
        path = tmp_path / "main.py"
        path.write_text(source)
        return functions_framework.create_app(target, str(path), kind).test_client()

    return serve


HTTP = """
import functions_framework, semel, semel.functions
shop = semel.Semel("memory:", namespace="functions")
runs = []

@functions_framework.http
@semel.functions.http(shop, name="charge", source=SOURCE, key="/order", caller=CALLER)
def charge(request):
    order = request.get_json()["order"]
    runs.append(order)
    if order == "down" and runs.count("down") == 1:
        raise RuntimeError("no gateway")
    return {"order": order, "key": semel.run().key, "runs": len(runs)}, 201
"""


def http(client: Any, source: str) -> Any:
    caller = '"shared"' if source == "api" else "None"
    text = HTTP.replace("SOURCE", repr(source)).replace("CALLER", caller).replace(", caller=None", "")
    return client(text, "charge", "http")


def test_a_task_runs_once_and_its_duplicate_is_acknowledged(client: Any) -> None:
    served = http(client, "cloud-tasks")
    first = served.post("/", data='{"order": "A-1"}', headers=TASK)
    again = served.post("/", data='{"order":"A-1"}', headers=TASK)
    assert (first.status_code, first.get_json()["runs"]) == (201, 1)
    assert (again.status_code, again.data, again.headers["Idempotent-Replayed"]) == (200, b"", "true")


def test_a_function_that_raises_is_delivered_again(client: Any) -> None:
    served = http(client, "cloud-tasks")
    assert served.post("/", data='{"order": "down"}', headers=TASK).status_code == 500
    assert served.post("/", data='{"order": "down"}', headers=TASK).get_json()["runs"] == 2


def test_an_api_client_gets_the_stored_answer(client: Any) -> None:
    text = HTTP.replace("SOURCE", "'api'").replace("CALLER", '"shared"').replace('key="/order"', 'key="idempotency-key"')
    served = client(text, "charge", "http")
    headers = {"Idempotency-Key": "k1", "Content-Type": "application/json"}
    first = served.post("/x?y=1", data='{"order": "A-1"}', headers=headers)
    again = served.post("/x?y=1", data='{"order": "A-1"}', headers=headers)
    assert first.get_json() == again.get_json() and again.headers["Idempotent-Replayed"] == "true"
    assert served.post("/x?y=1", data='{"order": "A-2"}', headers=headers).status_code == 422
    assert served.post("/x", data='{"order": "A-1"}', headers={"Content-Type": "application/json"}).status_code == 400


def test_a_push_without_a_key_part_is_acknowledged_and_kept(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="semel")
    served = http(client, "pubsub")
    push = {"message": {"messageId": "1", "data": base64.b64encode(b"{}").decode()}, "subscription": "projects/p/subscriptions/s"}
    assert served.post("/", json=push).status_code == 200
    assert "outcome=invalid" in caplog.text


EVENT = """
import functions_framework, semel, semel.functions
shop = semel.Semel("memory:", namespace="events")
runs = []

@functions_framework.cloud_event
@semel.functions.cloud_event(shop, name="resize")
def resize(event):
    runs.append(event["id"])
    if event["id"] == "down" and runs.count("down") == 1:
        raise RuntimeError("no gateway")
"""


def test_an_event_runs_once_and_what_must_come_again_raises(client: Any) -> None:
    served = client(EVENT, "resize", "cloudevent")

    def send(event: str, data: Any = None) -> int:
        headers = {"ce-id": event, "ce-source": "/s", "ce-type": "t", "ce-specversion": "1.0"}
        return int(served.post("/", data=json.dumps(data or {}), headers={**headers, "Content-Type": "application/json"}).status_code)

    assert [send("e1"), send("e1")] == [200, 200]
    assert [send("down"), send("down"), send("down")] == [500, 200, 200]
    # The same event with other data is other work: it is kept as a letter, and acknowledged.
    assert send("e1", {"other": 1}) == 200


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"source": "carrier-pigeon"}, "carrier-pigeon"),
        ({"source": "api"}, "caller"),
        ({"source": "cloud-tasks", "upstream": "http://h"}, "belongs to a gate"),
        ({"source": "cloud-tasks", "keys": "/x"}, "keys"),
    ],
)
def test_wrong_settings_are_found_when_a_function_is_decorated(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(semel.ConfigError, match=message):
        semel.functions.http(semel.Semel("memory:"), **settings)(lambda request: "")

