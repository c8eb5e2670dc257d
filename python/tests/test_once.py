"""One function, many calls, one run."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import pytest

import semel


class CardRefused(Exception):
    pass


class GatewayDown(Exception):
    pass


class Timeout(Exception):
    pass


def test_repeats_of_a_call_run_once_on_every_store(any_store: str, namespace: str) -> None:
    shop = semel.Semel(any_store, namespace=namespace)
    runs = []

    @shop.once(key="order_id")
    def charge(order_id: str, cents: int) -> dict[str, Any]:
        runs.append(order_id)
        return {"order": order_id, "cents": cents}

    first = charge("A-1", 900)
    assert charge(order_id="A-1", cents=900) == first
    assert charge.outcome("A-1", 900) == semel.Replayed(first)
    assert charge("A-2", 900)["order"] == "A-2"
    assert runs == ["A-1", "A-2"]


@pytest.mark.parametrize("kind", ["redis_url", "database"])
def test_another_user_of_the_store_hears_the_first_ones_value(
    request: pytest.FixtureRequest, kind: str, namespace: str
) -> None:
    answers = []
    for number in (1, 2):
        shop = semel.Semel(request.getfixturevalue(kind), namespace=namespace)

        @shop.once(key="order_id", name="charge")
        def charge(order_id: str) -> int:
            return number  # noqa: B023

        answers.append(charge.outcome("A-1"))
    assert answers == [semel.Ran(1), semel.Replayed(1)]


def test_calls_at_once_run_once(shop: semel.Semel) -> None:
    runs, values = [], []

    @shop.once(key="order_id")
    def charge(order_id: str) -> int:
        runs.append(order_id)
        time.sleep(0.05)
        return 7

    threads = [threading.Thread(target=lambda: values.append(charge("A-1"))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (runs, values) == (["A-1"], [7] * 16)


def test_the_same_key_with_other_arguments_is_other_work(shop: semel.Semel) -> None:
    @shop.once(key="order_id")
    def charge(order_id: str, cents: int) -> int:
        return cents

    charge("A-1", 900)
    with pytest.raises(semel.Mismatched, match="known with other arguments"):
        charge("A-1", 901)
    assert isinstance(charge.outcome("A-1", 901), semel.Mismatched)


def test_a_function_that_raises_runs_again(shop: semel.Semel) -> None:
    runs = []

    @shop.once(key="order_id")
    def charge(order_id: str) -> int:
        runs.append(semel.run().attempt)
        if len(runs) < 3:
            raise GatewayDown("try later")
        return len(runs)

    for _ in range(2):
        with pytest.raises(GatewayDown, match="try later"):
            charge("A-1")
    assert (charge("A-1"), charge("A-1"), runs) == (3, 3, [1, 2, 3])


def test_a_final_exception_is_raised_again_and_never_run_again(shop: semel.Semel) -> None:
    runs = []

    @shop.once(key="order_id", final=(CardRefused,))
    def charge(order_id: str) -> None:
        runs.append(order_id)
        raise CardRefused("no money", order_id)

    for _ in range(3):
        with pytest.raises(CardRefused) as raised:
            charge("A-1")
        assert raised.value.args == ("no money", "A-1")
    outcome = charge.outcome("A-1")
    assert isinstance(outcome, semel.Failed) and outcome.exception_name.endswith("CardRefused")
    assert runs == ["A-1"]


def test_under_park_an_exception_is_in_doubt_unless_it_says_that_nothing_happened(shop: semel.Semel) -> None:
    runs = []

    @shop.once(key="order_id", in_doubt="park", undone=(GatewayDown,), final=(CardRefused,))
    def charge(order_id: str, error: str) -> None:
        runs.append(order_id)
        raise {"down": GatewayDown, "refused": CardRefused, "timeout": Timeout}[error](error)

    for order, error, expected, times in [
        ("A-1", "down", GatewayDown, 2),
        ("A-2", "refused", CardRefused, 1),
    ]:
        for _ in range(2):
            with pytest.raises(expected):
                charge(order, error)
        assert runs.count(order) == times
    with pytest.raises(Timeout):
        charge("A-3", "timeout")
    with pytest.raises(semel.Parked, match="may or may not have taken effect"):
        charge("A-3", "timeout")
    assert runs.count("A-3") == 1


def test_in_doubt_on_counts_as_doubt(shop: semel.Semel) -> None:
    @shop.once(key="order_id", in_doubt_on=(Timeout,), max_attempts=1)
    def charge(order_id: str) -> None:
        raise Timeout

    with pytest.raises(Timeout):
        charge("A-1")
    with pytest.raises(semel.Parked):
        charge("A-1")


def test_a_duplicate_waits_as_long_as_it_was_told_and_is_then_busy(shared: semel.Semel) -> None:
    other = semel.Semel(shared.url, namespace=shared.namespace, cache=0)
    entered, leave = threading.Event(), threading.Event()

    def work(order_id: str) -> str:
        entered.set()
        assert leave.wait(30)
        return "done"

    first = shared.once(key="order_id", name="charge")(work)
    second = other.once(key="order_id", name="charge", wait="100ms")(work)
    thread = threading.Thread(target=first, args=("A-1",))
    thread.start()
    assert entered.wait(30)
    began = time.monotonic()
    with pytest.raises(semel.Busy) as busy:
        second("A-1")
    assert 0.09 < time.monotonic() - began < 10 and busy.value.retry_after > 0
    leave.set()
    thread.join()
    assert second("A-1") == "done"


def test_a_run_that_outlives_its_timeout_is_in_doubt_and_what_it_says_does_not_count(shop: semel.Semel) -> None:
    over = threading.Event()
    stale = []

    @shop.once(key="order_id", timeout="50ms", in_doubt="park")
    def charge(order_id: str) -> str:
        while not semel.run().stale:
            over.wait(0.01)
        stale.append(True)
        return "too late"

    outcome = charge.outcome("A-1")
    assert isinstance(outcome, semel.Parked) and stale == [True]
    assert isinstance(charge.outcome("A-1"), semel.Parked)


def test_a_value_that_is_not_json_is_the_first_callers_alone(
    shop: semel.Semel, caplog: pytest.LogCaptureFixture
) -> None:
    @shop.once(key="order_id")
    def charge(order_id: str) -> object:
        return {1, 2}

    assert charge("A-1") == {1, 2}
    assert "the value is not kept" in caplog.text
    with pytest.raises(semel.NotKept, match="only the first caller has it"):
        charge("A-1")


def test_each_call_is_one_log_line(shop: semel.Semel, caplog: pytest.LogCaptureFixture) -> None:
    @shop.once(key="order_id", name="charge")
    def charge(order_id: str, cents: int = 1) -> int:
        return 1

    with caplog.at_level(logging.INFO, logger="semel"):
        charge("A-1")
        charge("A-1")
        charge.outcome("A-1", 2)
    told = [(record.levelname, record.semel["outcome"]) for record in caplog.records]  # type: ignore[attr-defined]
    assert told == [("INFO", "ran"), ("INFO", "replayed"), ("WARNING", "mismatched")]
    first = caplog.records[0].getMessage()
    assert f"key={charge.key('A-1')}" in first and "attempt=1" in first and "A-1" not in first.replace(charge.key("A-1"), "")


def test_calls_are_counted_by_task_and_outcome(shop: semel.Semel) -> None:
    from prometheus_client import REGISTRY

    @shop.once(key="order_id", name="counted")
    def charge(order_id: str) -> int:
        return 1

    charge("A-1")
    charge("A-1")
    charge("A-1")

    def count(outcome: str) -> Any:
        return REGISTRY.get_sample_value("semel_calls_total", {"task": "counted", "outcome": outcome})

    assert (count("ran"), count("replayed")) == (1.0, 2.0)


def test_a_run_is_a_span(shop: semel.Semel) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)

    @shop.once(key="order_id", name="charge")
    def charge(order_id: str) -> int:
        return 1

    charge("A-1")
    charge("A-1")
    (span,) = exporter.get_finished_spans()
    assert span.name == "process charge"
    assert span.attributes is not None and span.attributes["semel.attempt"] == 1


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"key": "order"}, "key part 'order' names no parameter; there are: order_id, cents"),
        ({"key": "/order/id"}, "names no parameter"),
        ({"key": []}, "names nothing"),
        ({"key": [1]}, "is not a text"),
        ({"retention": "soon"}, "retention='soon' is not a duration"),
        ({"lease": "2d", "retention": "1d"}, "lease"),
        ({"in_doubt": "maybe"}, "say one of 'retry', 'park'"),
        ({"completes": "me"}, "say one of 'run', 'handler'"),
        ({"final": ("CardRefused",)}, "is not an exception class"),
        ({"timeout": -1}, "timeout must be a number of seconds"),
    ],
)
def test_wrong_terms_are_found_when_a_function_is_decorated(
    shop: semel.Semel, terms: dict[str, Any], message: str
) -> None:
    with pytest.raises(semel.ConfigError) as raised:

        @shop.once(**terms)
        def charge(order_id: str, cents: int) -> None: ...

    assert message in str(raised.value)


def test_a_generator_cannot_be_remembered(shop: semel.Semel) -> None:
    with pytest.raises(semel.ConfigError, match="is a generator"):

        @shop.once
        def numbers() -> Any:
            yield 1


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://root:secret@db/x", "there is no store for mysql:"),
        ("postgres", "names no store"),
        ("dir:", "dir: needs a path"),
    ],
)
def test_a_wrong_url_is_named_without_its_password(url: str, message: str) -> None:
    with pytest.raises(semel.ConfigError) as raised:
        semel.Semel(url).once(lambda: 1)()
    assert message in str(raised.value) and "secret" not in str(raised.value)


def test_a_store_that_is_away_says_so_before_anything_runs(namespace: str) -> None:
    shop = semel.Semel("redis://127.0.0.1:1/", namespace=namespace)
    runs = []

    @shop.once
    def charge() -> None:
        runs.append(1)

    with pytest.raises(semel.StoreUnavailable) as raised:
        charge()
    assert raised.value.retry_after > 0 and not runs


def test_errors_survive_a_pickle() -> None:
    import pickle

    errors: list[semel.Error] = [
        semel.Busy("busy", 3.0), semel.KeyRefused("no", "type"), semel.Failed("f", "shop.CardRefused"), semel.Parked("p"),
        semel.StepRefused("s", True), semel.StoreUnavailable("away"),
    ]  # fmt: skip
    for error in errors:
        back = pickle.loads(pickle.dumps(error))
        assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))


def test_an_effect_that_happened_is_recorded_whatever_its_value_is(shop: semel.Semel) -> None:
    runs = []

    def broken(value: Any) -> Any:
        raise OSError("no encoder")

    @shop.once(key="order_id", encode=broken)
    def charge(order_id: str) -> object:
        runs.append(order_id)
        return object()

    charge("A-1")
    assert isinstance(charge.outcome("A-1"), semel.NotKept) and runs == ["A-1"]


def test_a_function_that_returns_what_has_not_run_is_refused(shop: semel.Semel) -> None:
    async def work() -> None: ...

    @shop.once(key="order_id")
    def charge(order_id: str) -> Any:
        return work()

    for _ in range(2):
        with pytest.raises(semel.ConfigError, match="which has not run"):
            charge("A-1")


def test_an_exception_that_cannot_say_what_it_is_is_recorded(shop: semel.Semel) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise AttributeError("no text")

    runs = []

    @shop.once(key="order_id", final=(Mute,))
    def charge(order_id: str) -> None:
        runs.append(order_id)
        raise Mute

    for _ in range(2):
        with pytest.raises(Mute):
            charge("A-1")
    assert runs == ["A-1"]


def test_a_call_inside_the_opening_of_its_store_does_not_hang(shop: semel.Semel, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a signal's handler makes one, on the thread that opens."""
    charge = shop.once(key="order_id")(lambda order_id: order_id)
    opens = shop.home._open
    seen: list[str] = []

    def interrupted() -> Any:
        if not seen:
            seen.append("begun")
            seen.append(charge("in the handler"))
        return opens()

    monkeypatch.setattr(shop.home, "_open", interrupted)
    assert charge("outside") == "outside"
    assert seen == ["begun", "in the handler"]
