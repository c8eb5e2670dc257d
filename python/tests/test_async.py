"""Async functions: waiting never blocks the loop, and a cancelled call says what is true of it."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

import pytest

import semel
from semel._wait import on_loop

from .conftest import Start


def test_calls_at_once_run_once(any_store: str, namespace: str) -> None:
    shop = semel.Semel(any_store, namespace=namespace)
    runs = []

    @shop.once(key="order_id")
    async def charge(order_id: str) -> str:
        runs.append(order_id)
        await asyncio.sleep(0.05)
        return order_id

    async def main() -> list[str]:
        return await asyncio.gather(*(charge(f"A-{number % 3}") for number in range(30)))

    values = asyncio.run(main())
    assert sorted(runs) == ["A-0", "A-1", "A-2"]
    assert values == [f"A-{number % 3}" for number in range(30)]


def test_the_loop_goes_on_while_a_call_waits(shared: semel.Semel) -> None:
    other = semel.Semel(shared.url, namespace=shared.namespace, cache=0)
    release = asyncio.Event()
    entered = asyncio.Event()

    async def work(order_id: str) -> str:
        entered.set()
        await release.wait()
        return "done"

    first = shared.once(key="order_id", name="charge")(work)
    second = other.once(key="order_id", name="charge", wait="20s")(work)

    async def main() -> Any:
        running = asyncio.create_task(first("A-1"))
        await entered.wait()
        waiting = asyncio.create_task(second.outcome("A-1"))
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert not waiting.done()
        release.set()
        return await running, await waiting

    assert asyncio.run(main()) == ("done", semel.Replayed("done"))


def test_a_call_cancelled_while_it_runs_is_in_doubt(shop: semel.Semel) -> None:
    entered = []

    @shop.once(key="order_id", in_doubt="park")
    async def charge(order_id: str) -> None:
        entered.append(order_id)
        await asyncio.sleep(60)

    async def main() -> Any:
        call = asyncio.create_task(charge("A-1"))
        while not entered:
            await asyncio.sleep(0.001)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return await charge.outcome("A-1")

    assert isinstance(asyncio.run(main()), semel.Parked)
    assert entered == ["A-1"]


def test_a_call_cancelled_while_it_asks_runs_nothing_and_leaves_nothing_behind(shared: semel.Semel) -> None:
    runs = []

    @shared.once(key="order_id", in_doubt="park")
    async def charge(order_id: str) -> int:
        runs.append(order_id)
        return 1

    async def main() -> Any:
        await charge("warm")
        answered = _told_of_answers(asyncio.get_running_loop())
        call = asyncio.create_task(charge("A-1"))
        await asyncio.sleep(0)  # it has asked; the answer comes to the loop later
        assert answered.wait(20)  # it is there before the loop looks
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        for _ in range(100):
            outcome = await charge.outcome("A-1")
            if not isinstance(outcome, semel.Again):
                return outcome
            await asyncio.sleep(0.05)

    # Nothing of the cancelled call was begun, so even under park the next one runs.
    assert asyncio.run(main()) == semel.Ran(1)
    assert runs == ["warm", "A-1"]


def _told_of_answers(loop: Any) -> threading.Event:
    """Set when an answer has been put before the loop by another thread."""
    answered = threading.Event()
    put = loop.call_soon_threadsafe

    def put_and_tell(*args: Any) -> Any:
        handle = put(*args)
        answered.set()
        return handle

    loop.call_soon_threadsafe = put_and_tell
    return answered


def test_a_run_granted_at_the_moment_of_a_cancellation_is_given_back(shop: semel.Semel) -> None:
    runs = []

    @shop.once(key="order_id", in_doubt="park")
    async def charge(order_id: str) -> int:
        runs.append(order_id)
        return 1

    async def main() -> Any:
        def grant_and_cancel(loop: Any, answered: Any) -> None:
            calls = charge.calls
            loop.call_soon(answered, shop.home.get().begin(calls.native, *calls.payloads(("A-1",), {})))
            loop.call_soon(asking.cancel)

        asking = asyncio.create_task(on_loop(grant_and_cancel))
        with pytest.raises(asyncio.CancelledError):
            await asking
        while isinstance(outcome := await charge.outcome("A-1"), semel.Again):
            await asyncio.sleep(0.01)
        return outcome

    # Had it been dropped, it would be in doubt, and parked.
    assert asyncio.run(main()) == semel.Ran(1)
    assert runs == ["A-1"]


@pytest.mark.parametrize("scheme", ["redis", "postgres"])
def test_a_store_that_never_answers_does_not_stop_the_loop(namespace: str, scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        shop = semel.Semel(f"{scheme}://u@127.0.0.1:{silent.getsockname()[1]}/", namespace=namespace)

        @shop.once(key="order_id")
        async def charge(order_id: str) -> None: ...

        async def main() -> tuple[list[Any], float, float]:
            began = last = time.monotonic()
            longest = 0.0
            calls = asyncio.gather(*(charge.outcome(f"A-{number}") for number in range(5)))
            while not calls.done():
                await asyncio.sleep(0.01)
                last, pause = time.monotonic(), time.monotonic() - last
                longest = max(longest, pause)
            return await calls, longest, last - began

        outcomes, longest, took = asyncio.run(main())
    assert all(isinstance(outcome, semel.StoreUnavailable) for outcome in outcomes)
    assert longest < took / 2, f"the loop stood still for {longest} s of {took} s"


def test_a_loop_that_ends_with_answers_pending_ends(shop: semel.Semel) -> None:
    @shop.once(key="order_id")
    async def charge(order_id: int) -> int:
        return order_id

    async def main() -> None:
        for number in range(50):
            asyncio.ensure_future(charge(number))

    asyncio.run(main())
    assert asyncio.run(charge(1000)) == 1000


@pytest.mark.parametrize("store", ["memory:", "redis"])
def test_a_program_that_ends_with_callbacks_under_way_ends_well(
    start: Start, redis_url: str, namespace: str, store: str
) -> None:
    for number in range(6):
        process = start("async_exit.py", redis_url if store == "redis" else store, f"{namespace}-{number}")
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, (process.returncode, out, err)


def test_a_step_in_a_thread_of_async_code_is_done(shop: semel.Semel) -> None:
    done = []

    @shop.once(key="order_id")
    async def pay(order_id: str) -> Any:
        def charge(step: semel.StepInfo) -> int:
            done.append(step.key)
            return 5

        return await asyncio.to_thread(lambda: semel.step("charge", charge))

    assert asyncio.run(pay("A-1")) == 5
    assert len(done) == 1
