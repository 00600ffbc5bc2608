"""Real servers for tests: one PostgreSQL and one Valkey for each test process, an own database for each test."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
from pydantic import SecretStr
from redis import Redis as RedisClient

from app.settings import Settings
from app.store.database import Database
from app.store.migrate import migrate
from tests.databases import in_database
from tests.processes import Stack
from tests.sqs_server import sqs_server
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis

BINARY_OVERRIDES = ("OUTLAST_POSTGRES_BIN", "OUTLAST_REDIS_BIN")
TEMPLATE = "outlast_template"
FILE_COPY_SINCE = 150_000

for _name in [name for name in os.environ if name.startswith("OUTLAST_") and name not in BINARY_OVERRIDES]:
    del os.environ[_name]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it runs in the background so, and every process of a test would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def servers_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="session")
def postgres_server(servers_folder: Path) -> Iterator[Postgres]:
    """A PostgreSQL of this test process; durable only in name."""
    with Postgres(servers_folder, durable=False) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url(postgres_server: Postgres) -> str:
    """The superuser's URL of the maintenance database."""
    return postgres_server.url


@pytest.fixture(scope="session")
def template_database(postgres_url: str) -> str:
    """The name of a migrated database that others are copied from."""
    _execute(postgres_url, f"CREATE DATABASE {TEMPLATE}")
    migrate(Settings(database_url=SecretStr(in_database(postgres_url, TEMPLATE))))
    return TEMPLATE


@pytest.fixture
def database_url(postgres_url: str, template_database: str) -> Iterator[str]:
    """A migrated, empty database of this test alone."""
    with copied(postgres_url, template_database) as url:
        yield url


@pytest.fixture(scope="session")
def redis_server(servers_folder: Path) -> Iterator[Redis]:
    """A Valkey of this test process."""
    with Redis(servers_folder, durable=False) as server:
        yield server


@pytest.fixture
def redis_url(redis_server: Redis) -> str:
    """The URL of an emptied Valkey."""
    with RedisClient.from_url(redis_server.url) as client:  # pyright: ignore[reportUnknownMemberType]  # its **kwargs
        client.execute_command("FLUSHALL")  # pyright: ignore[reportUnknownMemberType]  # its **options
    return redis_server.url


@pytest.fixture(scope="session")
def sqs_url(servers_folder: Path) -> Iterator[str]:
    """The URL of an SQS of this test process; tests keep apart by the prefix of their queues."""
    with sqs_server(servers_folder) as url:
        yield url


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    """Settings for this test's servers, with short clocks."""
    return short_clocks(database_url, redis_url)


def short_clocks(database_url: str, redis_url: str) -> Settings:
    """Settings for these servers, with short clocks."""
    return Settings(
        database_url=SecretStr(database_url),
        redis_url=SecretStr(redis_url),
        lease_seconds=2,
        suspect_seconds=0.8,
        heartbeat_seconds=0.2,
        sweep_seconds=0.05,
        backoff_base_seconds=0.1,
        backoff_cap_seconds=1,
        republish_seconds=1,
        block_seconds=0.3,
        shutdown_seconds=5,
    )


@pytest.fixture
async def db(settings: Settings) -> AsyncIterator[Database]:
    """A pool on this test's database."""
    database = await Database.open(settings, "test")
    yield database
    await database.close()


@pytest.fixture
def stack(settings: Settings, tmp_path: Path) -> Iterator[Stack]:
    """Starts real `outlast` processes on this test's servers; none is left afterwards."""
    with Stack(settings, tmp_path / "logs") as processes:
        yield processes


@contextmanager
def copied(postgres_url: str, template: str) -> Iterator[str]:
    """The URL of a new database, a copy of `template`; dropped afterwards."""
    name = f"test_{uuid4().hex}"
    strategy = " STRATEGY file_copy" if _version(postgres_url) >= FILE_COPY_SINCE else ""
    _execute(postgres_url, f"CREATE DATABASE {name} TEMPLATE {template}{strategy}")
    yield in_database(postgres_url, name)
    _execute(postgres_url, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _execute(url: str, statement: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(run())


def _version(url: str) -> int:
    async def run() -> int:
        connection = await asyncpg.connect(url)
        try:
            return int(await connection.fetchval("SHOW server_version_num"))
        finally:
            await connection.close()

    return asyncio.run(run())
