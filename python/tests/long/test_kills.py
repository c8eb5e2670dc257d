"""Each of `examples/celery-*` in its right form, with workers that are killed again and again in the middle of a run, in
three ways, and each message sent twice. No effect is lost, and none happens twice.

What is sent, and which effects are counted, is in the scenarios of `semel prove`.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import threading
import time
import tomllib
from pathlib import Path
from typing import Any, Callable, Iterator

import psycopg
import pytest

from ..test_specimens import EXAMPLES, Downstream, Specimen, one

PATTERNS = ["check-first", "hash-key", "lock", "payment", "seen-marker", "status-row", "upsert"]
NEW_WORK_PER_KILL = 3

POOL, WORKER, COLD = "pool process", "worker", "SIGQUIT"
KILLS = {
    "rabbitmq": [POOL, WORKER, POOL, COLD] * 3,
    # A worker that is killed whole is followed there after an hour, the default visibility timeout.
    "redis": [POOL, COLD, POOL] * 3,
}

STATEMENT_SECONDS = 0.3
"""How long each statement of a task, and its COMMIT, take: time to be killed in."""

SLOW = f"""
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep({STATEMENT_SECONDS}); RETURN NULL; END';
DO $$ DECLARE it record; BEGIN
    FOR it IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
        EXECUTE format('CREATE CONSTRAINT TRIGGER now AFTER INSERT OR UPDATE ON %I FOR EACH ROW EXECUTE FUNCTION slow()',
                       it.tablename);
        EXECUTE format('CREATE CONSTRAINT TRIGGER later AFTER INSERT OR UPDATE ON %I DEFERRABLE INITIALLY DEFERRED '
                       'FOR EACH ROW EXECUTE FUNCTION slow()', it.tablename);
    END LOOP;
END $$
"""
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"


class Service(Downstream):
    """A service elsewhere that knows keys, and takes its time before and after each effect."""

    def __init__(self) -> None:
        super().__init__(honours_key=True)
        self.let_go()
        self._counting, self.working = threading.Lock(), 0

    def ask(self, path: str, key: str | None) -> int:
        self._add(1)
        try:
            time.sleep(STATEMENT_SECONDS)
            status = super().ask(path, key)
            time.sleep(STATEMENT_SECONDS)
            return status
        finally:
            self._add(-1)

    def _add(self, number: int) -> None:
        with self._counting:
            self.working += number


class Scenario:
    """What `semel prove` is told about an example."""

    def __init__(self, pattern: str) -> None:
        self.example = f"celery-{pattern}"
        self._told: dict[str, Any] = tomllib.loads((EXAMPLES / self.example / "right.toml").read_text())
        (self.task,) = [it["spawn"].rsplit(":")[-1] for it in self._told["process"] if "serve" in it["spawn"]]

    def prepare(self, database: str) -> None:
        with psycopg.connect(database) as connection:
            for it in self._told.get("before", []):
                if not it.get("each"):
                    connection.execute(it["sql"])
            connection.execute(SLOW)

    def prepare_one(self, database: str, name: str) -> None:
        with psycopg.connect(database) as connection:
            connection.execute("SET session_replication_role = replica")  # not slow
            for it in self._told.get("before", []):
                if it.get("each"):
                    connection.execute(it["sql"].replace("{id}", name))

    def arguments(self, name: str) -> dict[str, Any]:
        arguments: dict[str, Any] = json.loads(self._told["deliver"]["body"].replace("{id}", name))
        return arguments

    def variables(self, url: str) -> dict[str, str]:
        return {it["env"]: url for it in self._told["dependency"] if "url" in it}

    def assert_once(self, database: str, service: Service, works: int) -> None:
        for it in self._told["effect"]:
            if "sql" in it:
                with psycopg.connect(database) as connection:
                    rows = connection.execute(it["sql"]).fetchall()
                assert [count for _, count in rows] == [it.get("expected", 1)] * works, (it["name"], rows)
        services = [it for it in self._told["effect"] if "http" in it]
        assert sorted(service.effects.values()) == [works] * len(services), service.effects


class Attacked(Specimen):
    """A worker that is killed, and followed by another."""

    def send_twice(self, scenario: Scenario, name: str) -> list[Any]:
        return [self.send(scenario.task, **scenario.arguments(name)) for _ in range(2)]

    def kill(self, kind: str) -> None:
        if kind == POOL:
            os.kill(random.choice(self.until(lambda: self.child_of(self._worker))), signal.SIGKILL)
            return
        if kind == WORKER:
            os.killpg(self._worker.pid, signal.SIGKILL)
        else:
            self._worker.send_signal(signal.SIGQUIT)
        self.wait_ended()
        self._worker = self.start("prefork", 2, "-Q", self._queue)
        self.until(lambda: len(self.child_of(self._worker)) == 2)

    def end(self) -> None:
        """Lets what runs run to its end."""
        self._worker.send_signal(signal.SIGTERM)
        self.wait_ended()

    def wait_ended(self) -> None:
        self.until(lambda: self._worker.poll() is not None)


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.stop()


Attack = Callable[[Scenario], Attacked]


@pytest.fixture(params=list(KILLS))
def broker(request: pytest.FixtureRequest) -> str:
    if request.param == "rabbitmq":
        request.getfixturevalue("on_rabbitmq")
    return str(request.param)


@pytest.fixture
def attack(
    broker: str, redis_url: str, database: str, service: Service, namespace: str, tmp_path: Path
) -> Iterator[Attack]:
    started: list[Attacked] = []

    def attack(scenario: Scenario) -> Attacked:
        environment = {"REDIS_URL": f"{redis_url.rstrip('/')}/4", "DATABASE_URL": database}
        environment.update(scenario.variables(service.url))
        started.append(Attacked(scenario.example, "right", environment, tmp_path / "logs", namespace))
        return started[-1]

    yield attack
    for attacked in started:
        attacked.stop()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_effect_is_lost_or_doubled(
    pattern: str, attack: Attack, broker: str, database: str, service: Service, namespace: str
) -> None:
    scenario = Scenario(pattern)
    names: list[str] = []
    results: list[Any] = []
    scenario.prepare(database)
    attacked = attack(scenario)
    for kind in KILLS[broker]:
        for _ in range(NEW_WORK_PER_KILL):
            names.append(f"{namespace}-{len(names)}")
            scenario.prepare_one(database, names[-1])
            results += attacked.send_twice(scenario, names[-1])
        attacked.until(lambda: service.working or one(database, WAITING))
        time.sleep(random.uniform(0, 2 * STATEMENT_SECONDS))
        attacked.kill(kind)
    attacked.until(lambda: all(result.state == "SUCCESS" for result in results))
    attacked.end()
    scenario.assert_once(database, service, len(names))
    runs = re.findall(r"outcome=ran .*attempt=(\d+)", attacked.log())
    again, unheard = sum(attempt != "1" for attempt in runs), len(names) - len(runs)
    assert again + unheard, "no kill hit a run"
    print(
        f"{pattern} on {broker}: {len(names)} works, {len(KILLS[broker])} kills; {again} works were run again, "
        f"{unheard} had ended when their process was killed"
    )
