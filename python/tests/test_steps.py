"""Steps: named parts of a run, done once each."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

import semel


class Down(Exception):
    pass


def test_a_step_that_was_done_is_not_done_again(any_store: str, namespace: str) -> None:
    shop = semel.Semel(any_store, namespace=namespace)
    done: list[str] = []
    keys: list[str] = []

    @shop.once(key="order_id")
    def pay(order_id: str, fail: bool = False) -> Any:
        def charge(step: semel.StepInfo) -> Decimal:
            done.append("charge")
            keys.append(step.key)
            return Decimal("9.50")

        amount = semel.step("charge", charge)
        if len(done) == 1:
            done.append("failed")
            raise Down
        semel.step("mail", lambda step: done.append("mail"))
        return amount

    with pytest.raises(Down):
        pay("A-1")
    assert pay("A-1") == Decimal("9.5")
    assert done == ["charge", "failed", "mail"]
    assert keys[0].startswith("v1_") and keys[0] != pay.key("A-1")


def test_a_step_whose_function_raises_is_done_again_with_the_same_key(shop: semel.Semel) -> None:
    keys = []

    @shop.once(key="order_id")
    def pay(order_id: str) -> int:
        def charge(step: semel.StepInfo) -> int:
            keys.append(step.key)
            if len(keys) == 1:
                raise Down
            return 1

        return semel.step("charge", charge)

    with pytest.raises(Down):
        pay("A-1")
    assert pay("A-1") == 1
    assert len(keys) == 2 and len(set(keys)) == 1


def test_under_park_a_step_that_may_have_happened_parks_the_work(shop: semel.Semel) -> None:
    runs = []

    @shop.once(key="order_id", in_doubt="park", undone=(Down,))
    def pay(order_id: str) -> None:
        def charge(step: semel.StepInfo) -> None:
            runs.append(1)
            raise Down  # the whole run says that nothing happened; the step cannot know

        semel.step("charge", charge)

    with pytest.raises(Down):
        pay("A-1")
    with pytest.raises(semel.StepRefused, match="may or may not have happened"):
        pay("A-1")
    with pytest.raises(semel.Parked):
        pay("A-1")
    assert runs == [1]


def test_a_name_used_twice_fails_for_good(shop: semel.Semel) -> None:
    @shop.once(key="order_id")
    def pay(order_id: str) -> None:
        semel.step("charge", lambda step: 1)
        semel.step("charge", lambda step: 2)

    with pytest.raises(semel.StepRefused, match="was used twice in one run"):
        pay("A-1")
    with pytest.raises(semel.Failed, match="was used twice in one run"):
        pay("A-1")


def test_a_step_needs_a_run() -> None:
    with pytest.raises(semel.Error, match="there is no run here"):
        semel.step("charge", lambda step: 1)


def test_a_step_whose_result_is_not_json_is_not_done(shop: semel.Semel) -> None:
    @shop.once(key="order_id")
    def pay(order_id: str) -> Any:
        return semel.step("charge", lambda step: object())

    with pytest.raises(semel.KeyRefused, match="is of type object"):
        pay("A-1")


def test_steps_are_awaited_in_async_code(shop: semel.Semel) -> None:
    done = []

    @shop.once(key="order_id")
    async def pay(order_id: str) -> Any:
        async def charge(step: semel.StepInfo) -> int:
            await asyncio.sleep(0)
            done.append(step.key)
            return 5

        charged = await semel.step("charge", charge)
        if semel.run().attempt == 1:
            raise Down
        plain: Any = semel.step("mail", lambda step: "sent")
        return [charged, await plain]

    async def main() -> Any:
        with pytest.raises(Down):
            await pay("A-1")
        return await pay("A-1")

    assert asyncio.run(main()) == [5, "sent"]
    assert len(done) == 1
