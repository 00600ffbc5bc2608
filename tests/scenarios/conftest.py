"""Fixtures of scenarios: one set of servers and processes that they share, and scenes without processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from app.settings import Settings
from app.store import kinds
from app.store.database import Database
from app.store.migrate import migrate
from tests.integration.scene import Scene, leading
from tests.integration.world import World, opened
from tests.processes import Stack
from tests.scenarios.premises import HANDLERS, Premises
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis
from workers.registry import load


@pytest.fixture(scope="session")
def shared_premises(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Premises]:
    folder = tmp_path_factory.mktemp("premises")
    (folder / "failpoints").mkdir(mode=0o700)
    with Postgres(folder, durable=False) as postgres, Redis(folder) as redis:
        settings = Settings(
            database_url=SecretStr(postgres.url),
            redis_url=SecretStr(redis.url),
            heartbeat_seconds=0.2,
            sweep_seconds=0.05,
            republish_seconds=1,
            block_seconds=0.3,
            backoff_base_seconds=0.1,
            backoff_cap_seconds=1,
            # A worker that a loaded machine keeps waiting for a moment must not look dead.
            suspect_seconds=10,
            lease_seconds=20,
            failpoints=str(folder / "failpoints"),
        )
        migrate(settings)
        with Stack(settings, folder / "logs") as stack:
            asyncio.run(_publish_kinds(settings))
            with Premises(stack, redis) as premises:
                yield premises


@pytest.fixture
def premises(shared_premises: Premises, tmp_path: Path) -> Iterator[Premises]:
    """Servers that the test may stop, an API, a relay and perhaps a worker, and no jobs that wait.

    What a test leaves behind must pass the whole audit.
    """
    shared_premises.journal_path = tmp_path / "journal"
    shared_premises.make_ready()
    yield shared_premises
    shared_premises.go_on()  # what a test that failed had held must not fill the slots of the next
    shared_premises.check()
    assert all(relay.alive() for relay in shared_premises.relays)


@pytest.fixture
async def scene(settings: Settings, db: Database) -> AsyncIterator[Scene]:
    async with leading(settings, db) as made:
        yield made


@pytest.fixture
async def world(settings: Settings, db: Database) -> AsyncIterator[World]:
    # It beats when the test makes it: on a busy machine that may be a while before it claims.
    patient = settings.model_copy(update={"suspect_seconds": 30, "lease_seconds": 60})
    async with opened(db, patient) as made:
        yield made


async def _publish_kinds(settings: Settings) -> None:
    db = await Database.open(settings, "test")
    await kinds.publish(db, load(HANDLERS).published())
    await db.close()
