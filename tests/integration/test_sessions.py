"""What one user of a pooled connection did to its session, the next one does not see."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from app.settings import Settings
from app.store.database import IDLE_SECONDS_LEAST, Database, connect


@pytest.fixture
async def single(settings: Settings) -> AsyncIterator[Database]:
    """A pool of one connection."""
    database = await Database.open(settings, "test", size_max=1)
    yield database
    await database.close()


async def test_what_a_transaction_sets_or_locks_in_its_session_ends_with_it(single: Database) -> None:
    async with single.transaction() as connection:
        await connection.execute("SET work_mem = '3MB'")
        await connection.execute("SELECT pg_advisory_lock(1)")
    async with single.session() as connection:
        assert await connection.fetchval("SHOW work_mem") != "3MB"
        assert await connection.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0


async def test_a_failed_transaction_leaves_the_connection_as_it_was(single: Database) -> None:
    async def fail() -> None:
        async with single.transaction() as connection:
            await connection.execute("SELECT pg_advisory_lock(1)")
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
    async with single.session() as connection:
        assert not connection.is_in_transaction()
        assert await connection.fetchval("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == 0


async def test_a_transaction_somebody_left_open_is_ended_by_the_pool(single: Database) -> None:
    async with single.session() as connection:
        await connection.execute("BEGIN")
    async with single.session() as connection:
        assert not connection.is_in_transaction()


async def test_a_process_that_freezes_in_a_transaction_does_not_keep_what_it_locked(
    single: Database, settings: Settings
) -> None:
    alone = await connect(settings, "test")
    try:
        async with single.session() as pooled:
            for session in (alone, pooled):
                ends_after = await session.fetchval("SHOW idle_in_transaction_session_timeout")
                assert ends_after == f"{max(settings.lease_seconds, IDLE_SECONDS_LEAST):.0f}s"
    finally:
        await alone.close()
