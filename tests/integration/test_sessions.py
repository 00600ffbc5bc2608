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


async def test_a_fresh_session_asks_for_no_type_that_the_process_has_met(settings: Settings) -> None:
    asked: list[str] = []
    for _ in range(2):
        asked.clear()
        session = await connect(settings, "test")
        try:
            with session.query_logger(lambda record: asked.append(record.query)):
                for statement in ("SELECT $1::uuid[]", "SELECT $1::timestamptz[], $2::uuid[]"):
                    await session.prepare(statement)
                assert await session.fetchval("SELECT $1::int8[]", [1, None]) == [1, None]
        finally:
            await session.close()
    assert [query for query in asked if "pg_type" in query or "jit" in query] == []
    assert asked


async def test_types_that_an_operator_adds_are_asked_for_every_time(settings: Settings) -> None:
    session = await connect(settings, "test")
    try:
        for labels in ("'red'", "'blue'"):
            await session.execute(f"DROP TYPE IF EXISTS shade; CREATE TYPE shade AS ENUM ({labels})")
            await session.reload_schema_state()
            assert await session.fetchval(f"SELECT array[{labels}]::shade[]") == [labels.strip("'")]
    finally:
        await session.close()
