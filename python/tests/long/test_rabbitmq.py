"""The tests with real workers once more, on RabbitMQ: those of the specimens, and those of the shop that are not about
Redis' visibility timeout. A worker that is killed whole is followed at once there."""

from __future__ import annotations

import os
import signal

import pytest

from .. import test_celery
from ..test_celery import *  # noqa: F403
from ..test_celery import Workers
from ..test_specimens import (
    test_a_payment_is_charged_once_where_its_wrong_form_charges_twice as test_a_payment_is_charged_once_where_its_wrong_form_charges_twice,
    test_mails_of_a_run_that_was_killed as test_mails_of_a_run_that_was_killed,
    test_points_are_added_once as test_points_are_added_once,
    serve as serve,
    start as start,
)

pytestmark = pytest.mark.usefixtures("on_rabbitmq")

del test_a_worker_that_is_killed_is_followed_after_the_visibility_timeout  # noqa: F821
del test_a_task_longer_than_the_visibility_timeout_runs_once  # noqa: F821


@pytest.mark.parametrize("pool", ["prefork", "threads", "solo"])
def test_a_worker_that_is_killed_is_followed_at_once(workers: Workers, pool: str) -> None:
    first = workers.start(pool, 1)
    result = workers.shop.slow.delay("A-1")
    workers.until(lambda: workers.count("A-1") == 1)
    os.killpg(first.pid, signal.SIGKILL)
    workers.go("A-1")
    workers.start(pool, 1)
    assert workers.get(result) == 2
