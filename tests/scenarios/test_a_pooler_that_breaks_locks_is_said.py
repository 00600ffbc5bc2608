"""Locks and listening need sessions of their own: behind a pooler that gives them away, nothing begins."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from app.domain.errors import SharedSession
from app.settings import Settings
from app.store.database import Database, connect
from app.store.relay import Leadership
from tests.integration.shell import Shell
from tests.processes import Stack
from tests.scenarios.pooler import pooling

HANDLERS = ["tests.handlers.steps"]


def through(settings: Settings, port: int) -> Settings:
    """The same database at the pooler's port."""
    url = settings.database_url.get_secret_value()
    return settings.model_copy(update={"database_url": SecretStr(url.replace(f":{port_of(settings)}/", f":{port}/"))})


def port_of(settings: Settings) -> int:
    port = urlsplit(settings.database_url.get_secret_value()).port
    assert port is not None
    return port


async def test_behind_a_pooler_in_transaction_mode_nothing_starts_and_everything_says_why(
    settings: Settings, db: Database, stack: Stack
) -> None:
    """Locks are left with whoever gets the session next: two leaders, or none for ever."""
    async with pooling(port_of(settings)) as port:
        pooled = stack.settings = through(settings, port)
        with pytest.raises(SharedSession, match="OUTLAST_DATABASE_URL"):
            await Leadership.open(pooled)
        examined = await Shell(pooled)("doctor", "-o", "json")
        assert examined.code == 8
        [sessions] = [check for check in examined.json()["data"] if check["check"] == "sessions"]
        assert sessions["status"] == "broken"
        for process in (stack.relay(), stack.worker(HANDLERS)):
            await asyncio.to_thread(process.wait_for_output, "leads through a pooler", 60)
    async with db.session() as connection:
        assert await connection.fetchval("SELECT count(*) FROM workers") == 0
        assert await connection.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0


async def test_a_busy_pooler_is_seen_through_as_well(settings: Settings) -> None:
    """With others at work it is chance which session one gets."""
    async with pooling(port_of(settings)) as port:
        pooled = through(settings, port)
        others = await Database.open(pooled, "others", size_max=5)

        async def work() -> None:
            while True:
                async with others.session() as connection, connection.transaction():
                    await connection.execute("SELECT pg_sleep(0.002)")

        working = [asyncio.create_task(work()) for _ in range(5)]
        for _ in range(20):
            with pytest.raises(SharedSession):
                await connect(pooled, "test")
        for task in working:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await others.close()


async def test_a_pooler_in_session_mode_is_as_good_as_none(settings: Settings) -> None:
    """A check that cries wolf is switched off."""
    async with pooling(port_of(settings), sessions=True) as port:
        pooled = through(settings, port)
        session = await connect(pooled, "test")
        assert session.get_server_pid() != await session.fetchval("SELECT pg_backend_pid()")
        leadership = await Leadership.open(pooled)
        assert await leadership.try_lead()
        examined = await Shell(pooled)("doctor", "-o", "json")
        assert examined.code == 0
        leadership.close()
        session.terminate()
