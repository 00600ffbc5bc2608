"""Fixtures of scenarios that share one set of servers and processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from app.settings import Settings
from app.store.migrate import migrate
from tests.processes import Stack
from tests.scenarios.premises import HANDLERS, Premises
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis


@pytest.fixture(scope="session")
def shared_premises(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Premises]:
    folder = tmp_path_factory.mktemp("premises")
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
        )
        migrate(settings)
        with Stack(settings, folder / "logs") as stack:
            assert stack.run("migrate", "--handlers", ",".join(HANDLERS)).returncode == 0
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
    shared_premises.check()
    assert all(relay.alive() for relay in shared_premises.relays)
