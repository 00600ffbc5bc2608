"""Redis is a hint and PostgreSQL may restart: nothing is lost, nothing is charged, nobody restarts anything."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from pydantic import SecretStr

from app.settings import Settings
from app.store.migrate import migrate
from app.transport import keys
from tests.client import Client, journal_of
from tests.fundamentals.conftest import HANDLERS
from tests.fundamentals.scale import scaled
from tests.processes import Stack, wait_until
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis

SLOTS = scaled(30, 60)
AWAY_SECONDS = scaled(3, 20)
RUNNING = 2 * SLOTS
# Enough for a full stream also when the first ones were claimed straight from PostgreSQL, before a relay led.
JOBS = 3 * RUNNING + 40


@dataclass
class Owned:
    """A stack on servers that the test may stop: two workers, jobs that hold until told to go on."""

    stack: Stack
    postgres: Postgres
    redis: Redis
    client: Client
    journal: Path

    def submit(self, count: int) -> list[str]:
        plan = {"journal": str(self.journal), "steps": ["one"], "hold": ["one"]}
        return self.client.submit_all("test.steps", [plan] * count)

    def submit_for(self, seconds: float) -> list[str]:
        """A job every fifth of a second, for so long."""
        ids: list[str] = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ids += self.submit(1)
            time.sleep(0.2)
        return ids

    def until_full(self) -> None:
        """Waits until every slot runs and as many entries are published and unread."""
        with connected(self.redis) as broker:
            stream = keys.stream("default")
            wait_until(lambda: journal_of(self.journal).count("hold") >= RUNNING, 30, what="running jobs")
            wait_until(lambda: broker.xlen(stream) >= 2 * RUNNING, 10, what="published and unread jobs")
            pending = broker.xpending(stream, keys.GROUP)["pending"]
            running = journal_of(self.journal).count("hold")
            print(f"{running} running, {broker.xlen(stream) - pending} published and unread")

    def go_on(self) -> None:
        Path(f"{self.journal}.one").touch()

    def until_done(self, ids: list[str]) -> list[dict[str, object]]:
        return [self.client.wait_for(job_id, "done", seconds=90) for job_id in ids]

    def audit(self) -> str:
        """What the audit says; fails when it finds anything."""
        audit = self.stack.run("audit")
        assert audit.returncode == 0, audit.stdout + audit.stderr
        return audit.stdout


@pytest.fixture
def owned(tmp_path: Path) -> Iterator[Owned]:
    with Postgres(tmp_path / "pg") as postgres, Redis(tmp_path / "redis", durable=False) as broker:
        settings = Settings(
            database_url=SecretStr(postgres.url), redis_url=SecretStr(broker.url), worker_concurrency=SLOTS
        )
        migrate(settings)
        with Stack(settings, tmp_path / "logs") as stack:
            stack.api()
            stack.relay()
            for _ in range(2):
                stack.worker(HANDLERS)
            client = Client(stack.api_url)
            wait_until(lambda: client.http.get("/v1/kinds").json()["data"], 30, what="published kinds")
            yield Owned(stack, postgres, broker, client, tmp_path / "journal")


def test_a_flushed_and_then_stopped_and_empty_redis_loses_nothing(owned: Owned) -> None:
    ids = owned.submit(JOBS)
    owned.until_full()
    with connected(owned.redis) as broker:
        broker.flushall()  # pyright: ignore[reportUnknownMemberType]  # its **kwargs
    wait_until(lambda: streams(owned) > 0, 10, what="the stream published anew")

    owned.redis.stop()
    owned.go_on()
    ids += owned.submit_for(AWAY_SECONDS)
    during = owned.client.wait_for(ids[-1], "done", seconds=30)
    assert during["attempt"] == 1, "straight from PostgreSQL while Redis is away"
    owned.redis.start()
    ids += owned.submit(20)

    jobs = owned.until_done(ids)
    assert all(job["crashes"] == 0 for job in jobs)
    owned.audit()


def test_postgresql_restarted_three_times_charges_no_crash(owned: Owned) -> None:
    ids = owned.submit(JOBS)
    owned.until_full()
    for _ in range(3):
        owned.postgres.stop()
        owned.postgres.start()
        wait_until(lambda: owned.client.http.get("/readyz").is_success, 30, what="readiness")
    owned.go_on()

    jobs = owned.until_done(ids)

    assert all(job["crashes"] == 0 for job in jobs)
    starts = journal_of(owned.journal).count("start")
    print(f"{len(jobs)} jobs, {starts} starts")
    assert starts == len(jobs)
    owned.audit()


def streams(owned: Owned) -> int:
    with connected(owned.redis) as broker:
        return broker.xlen(keys.stream("default"))


def connected(server: Redis) -> redis.Redis:
    return redis.Redis(port=server.address.port, password=server.address.password)
