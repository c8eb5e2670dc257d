"""A shop on Celery, as the workers of the tests run it. Effects are counted in Redis."""

from __future__ import annotations

import functools
import os
import time
from typing import Any

import redis
from celery import Celery
from celery.exceptions import Reject

import semel.celery

BROKER = os.environ.get("SHOP_BROKER", "memory://")
app = Celery("shop", broker=BROKER, backend=os.environ.get("SHOP_BACKEND", "cache+memory://"), task_cls="semel.celery:Task")
app.conf.update(
    broker_transport_options={
        "visibility_timeout": float(os.environ.get("SHOP_VISIBILITY", "3600")),
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
        # A worker that is killed may leave its lock on the list of unacknowledged messages for minutes.
        "global_keyprefix": f"{os.environ.get('SHOP_NAMESPACE', 'shop')}:",
    },
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    task_time_limit=30,
    task_default_queue=os.environ.get("SHOP_QUEUE", "celery"),
    broker_connection_retry_on_startup=True,
)
shop = semel.Semel(os.environ.get("SHOP_STORE", "memory:"), namespace=os.environ.get("SHOP_NAMESPACE", "shop"), cache=0)
semel.celery.setup(app, shop)
effects = redis.Redis.from_url(os.environ.get("SHOP_EFFECTS", "redis://127.0.0.1:1/"), decode_responses=True)
PREFIX = os.environ.get("SHOP_NAMESPACE", "shop")


# The tests load this module several times; a task of one app is not to appear in the others.
task = functools.partial(app.task, shared=False)


def count(name: str) -> int:
    return int(effects.incr(f"{PREFIX}:{name}"))


def wait_for(name: str) -> None:
    """Waits until the test says so."""
    while not effects.exists(f"{PREFIX}:go:{name}"):
        time.sleep(0.02)


class CardRefused(Exception):
    pass


class GatewayDown(Exception):
    pass


@task(once="order")
def charge(order: str, cents: int = 1) -> dict[str, Any]:
    return {"order": order, "cents": cents, "effect": count(order)}


@task(once={"key": "order", "lease": "1s"})
def slow(order: str) -> int:
    effect = count(order)
    wait_for(order)
    return effect


@task(once={"key": "order", "lease": "1s", "in_doubt": "park"})
def slow_parked(order: str) -> int:
    effect = count(order)
    wait_for(order)
    return effect


@task(once={"key": "order", "final": (CardRefused,)})
def refused(order: str) -> None:
    count(order)
    raise CardRefused("no money", order)


@task(bind=True, once="order", autoretry_for=(GatewayDown,), max_retries=3, retry_backoff=False,
          default_retry_delay=0)
def flaky(self: Any, order: str, fails: int) -> int:
    effect = count(order)
    if effect <= fails:
        raise GatewayDown(order)
    return effect


@task(bind=True, once="order", max_retries=3)
def retried_by_hand(self: Any, order: str) -> int:
    effect = count(order)
    if effect < 3:
        raise self.retry(countdown=0)
    return effect


@task(bind=True, once="order", max_retries=3)
def retried_beside(self: Any, order: str) -> str:
    effect = count(order)
    if effect < 2:
        self.retry(countdown=0, throw=False)
        return "retried"
    return "done"


@task(once="order", soft_time_limit=1)
def soft_limited(order: str) -> int:
    effect = count(order)
    if effect == 1:
        time.sleep(20)
    return effect


@task(once={"key": "order", "lease": "1s"})
def steps(order: str) -> list[int]:
    charged = semel.step("charge", lambda step: count(f"{order}:charge"))
    mailed = semel.step("mail", lambda step: count(f"{order}:mail"))
    wait_for(order)
    return [charged, mailed]


@task(bind=True, once={"key": "order", "in_doubt": "park"}, max_retries=3)
def parked_retry(self: Any, order: str) -> None:
    count(order)
    try:
        raise GatewayDown(order)
    except GatewayDown:
        raise self.retry(countdown=0)


@task(once="order")
def typed(order: str, amount: Any) -> str:
    count(order)
    return type(amount).__name__


@task(once=True)
def after(value: Any) -> int:
    return count("after")


@task()
def unprotected(order: str) -> int:
    return count(order)


@task(bind=True, once="/order/id", autoretry_for=(GatewayDown,), max_retries=2, default_retry_delay=0)
def changes_its_arguments(self: Any, order: dict[str, Any]) -> int:
    effect = count(order["id"])
    order["seen"] = True
    if effect < 3 or order.get("fails"):
        raise GatewayDown
    return effect


@task(bind=True, once="order", max_retries=3)
def raises_its_retry(self: Any, order: str) -> int:
    effect = count(order)
    if effect < 2:
        raise self.retry(countdown=0, throw=False)
    return effect


@task(bind=True, once={"key": "order", "in_doubt": "park"})
def calls_itself(self: Any, order: str, inner: str = "") -> Any:
    count(order)
    if inner:
        return self(inner)
    wait_for(order)
    return order



@task(bind=True, once="what")
def misused(self: Any, what: str, more: int = 0) -> Any:
    if what == "replace":
        return self.replace(charge.s("A-1"))
    return self.retry(kwargs={"what": what, "more": 1}, countdown=0)


@task(bind=True, once={"key": "order", "in_doubt": "park"})
def rejects(self: Any, order: str) -> None:
    count(order)
    raise Reject("no", requeue=True)
