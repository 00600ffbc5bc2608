"""The relay outlasts its servers and its own death: what waits gets to the workers, whoever leads."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Sequence

import pytest
from pydantic import SecretStr

from app.settings import Settings
from app.store.audit import conservation
from app.store.database import Database, connect
from app.store.fleet import Fleet, Live
from app.store.migrate import migrate
from tests.client import Client
from tests.processes import Stack, wait_until
from workers.dev.embedded import Server
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis

HANDLERS = ["tests.handlers.arithmetic"]
KIND = "test.double"
HEARD_SECONDS = 2.0  # processes that a test killed are not counted for longer


class Plant:
    """All of it on servers of its own, which a test may stop; the tests of this module share it, one after another."""

    def __init__(self, stack: Stack, postgres: Postgres, redis: Redis) -> None:
        self.stack = stack
        self.postgres = postgres
        self.redis = redis
        stack.api()
        self.relays = [stack.relay()]
        self.client = Client(stack.api_url)
        self._submitted: list[str] = []
        wait_until(lambda: self.leader() is not None, 60, what="a leader")

    def work(self) -> None:
        """There is a worker."""
        if not any(one.role == "worker" for one in self.live()):
            self.stack.worker(HANDLERS)
            wait_until(lambda: any(one.role == "worker" for one in self.live()), 60, what="a worker")

    def submit(self, count: int) -> None:
        self._submitted += self.client.submit_all(KIND, [{"value": number} for number in range(count)])

    def all_done(self, seconds: float = 60) -> None:
        """Every job submitted is done, nothing was charged to any, and no relay has ended."""
        wait_until(lambda: asyncio.run(self._ended()) == (len(self._submitted), 0), seconds, what="every job done")
        self._submitted.clear()
        assert asyncio.run(self._broken()) == []
        assert all(relay.alive() for relay in self.relays)

    def live(self) -> Sequence[Live]:
        return asyncio.run(self._live())

    def leader(self) -> Live | None:
        return next((one for one in self.live() if one.leader), None)

    def restart(self, server: Server) -> None:
        """As a crash does it: Redis comes back empty, PostgreSQL with what was committed."""
        self.kill(server)
        self.start(server)

    def kill(self, server: Server) -> None:
        server.process.kill()
        server.process.wait()

    def start(self, server: Server) -> None:
        server.spawn()
        wait_until(server.is_ready, 30, what=f"{server.name} again")

    async def _live(self) -> list[Live]:
        db = await Database.open(self.stack.settings, "test")
        try:
            return await Fleet(db).live(HEARD_SECONDS)
        finally:
            await db.close()

    async def _ended(self) -> tuple[int, int]:
        """How many of the submitted jobs are done, and how much was charged to them."""
        session = await connect(self.stack.settings, "test")
        try:
            row = await session.fetchrow(
                "SELECT count(*) FILTER (WHERE state = 'done') AS done, coalesce(sum(crashes + retries), 0) AS charged "
                "FROM outcomes WHERE job_id = ANY($1::uuid[])",
                self._submitted,
            )
        finally:
            await session.close()
        assert row is not None
        return row["done"], row["charged"]

    async def _broken(self) -> Sequence[object]:
        db = await Database.open(self.stack.settings, "test")
        try:
            return await conservation(db)
        finally:
            await db.close()


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plant]:
    folder = tmp_path_factory.mktemp("plant")
    with Postgres(folder) as postgres, Redis(folder, durable=False) as redis:
        settings = Settings(
            database_url=SecretStr(postgres.url),
            redis_url=SecretStr(redis.url),
            heartbeat_seconds=0.2,
            sweep_seconds=0.05,
            republish_seconds=1,
            block_seconds=0.3,
            # A worker that loses its servers for a moment must not look dead.
            suspect_seconds=10,
            lease_seconds=20,
        )
        migrate(settings)
        with Stack(settings, folder / "logs") as stack:
            assert stack.run("migrate", "--handlers", *HANDLERS).returncode == 0
            yield Plant(stack, postgres, redis)


@pytest.mark.parametrize("moment", ["before any worker", "while workers read"])
def test_a_broker_that_comes_back_empty_loses_no_job(plant: Plant, moment: str) -> None:
    if moment == "while workers read":
        plant.work()
    plant.submit(200)
    plant.restart(plant.redis)
    plant.submit(200)
    plant.work()
    plant.all_done()


def test_a_killed_leader_is_replaced_and_every_job_runs(plant: Plant) -> None:
    plant.relays.append(plant.stack.relay())
    plant.work()
    plant.submit(300)
    first = plant.leader()
    assert first is not None
    plant.relays.pop(0).kill()
    plant.submit(300)
    wait_until(lambda: (now := plant.leader()) is not None and now.id != first.id, 30, what="another leader")
    plant.all_done()


def test_a_frozen_broker_stops_nothing(plant: Plant) -> None:
    plant.work()
    plant.redis.process.send_signal(signal.SIGSTOP)
    try:
        plant.submit(100)
        plant.all_done()
        wait_until(lambda: any(one.broker_ok is False for one in plant.live()), what="word of the broker")
    finally:
        plant.redis.process.send_signal(signal.SIGCONT)
    plant.submit(100)
    plant.all_done()
    wait_until(lambda: all(one.broker_ok for one in plant.live()), what="the broker back")


def test_a_database_that_crashes_and_comes_back_needs_no_process_restarted(plant: Plant) -> None:
    plant.work()
    plant.submit(100)
    for _ in range(3):
        plant.restart(plant.postgres)
    wait_until(lambda: _tolerant(lambda: plant.submit(100)), 30, what="the API again")
    plant.all_done()
    wait_until(lambda: plant.leader() is not None, what="a leader")


def test_sessions_that_are_cut_again_and_again_stop_nothing(plant: Plant) -> None:
    plant.work()
    for _ in range(20):
        wait_until(lambda: _tolerant(lambda: plant.submit(10)), what="the API again")
        asyncio.run(_cut_all(plant.stack.settings))
    plant.all_done()


def test_a_relay_that_is_told_to_stop_leaves_with_a_word(plant: Plant) -> None:
    assert [relay.stop() for relay in plant.relays] == [0] * len(plant.relays)
    assert asyncio.run(_left_with_a_word(plant.stack.settings)) == len(plant.relays)
    plant.relays.clear()


async def _left_with_a_word(settings: Settings) -> int:
    session = await connect(settings, "test")
    try:
        return await session.fetchval("SELECT count(*) FROM workers WHERE role = 'relay' AND left_cause = 'stopped'")
    finally:
        await session.close()


def _tolerant(submit: Callable[[], None]) -> bool:
    try:
        submit()
    except AssertionError:
        return False
    return True


async def _cut_all(settings: Settings) -> None:
    session = await connect(settings, "test")
    await session.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name LIKE 'outlast %' AND pid <> pg_backend_pid()"
    )
    await session.close()


async def test_upkeep_that_cannot_be_done_ends_no_term_of_the_leader(stack: Stack, db: Database) -> None:
    async with db.session() as connection:
        await connection.execute("ALTER FUNCTION outlast_make_partitions RENAME TO outlast_missing")

    relay = stack.relay()
    relay.wait_for_output('"not_done"')

    assert "term_failed" not in relay.stderr
    assert relay.stop() == 0
