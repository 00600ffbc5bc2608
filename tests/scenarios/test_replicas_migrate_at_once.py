"""Deploys are parallel: every replica migrates when it starts, and one that is ahead of its schema waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from alembic.script import ScriptDirectory
from pydantic import SecretStr

from app.settings import Settings
from app.store.database import Database, Session, connect
from app.store.revision import HEAD, REVISIONS
from tests.databases import in_database
from tests.processes import ROOT, Process, Stack

REPLICAS = 3
GATE = 7_240_002
HANDLERS = ["tests.handlers.steps"]

# Whoever changes the schema stops at its first statement for as long as the gate is closed.
STOP_IN_MIDST = f"""
CREATE FUNCTION in_midst() RETURNS event_trigger LANGUAGE plpgsql AS
  $$BEGIN PERFORM pg_advisory_xact_lock_shared({GATE}); END$$;
CREATE EVENT TRIGGER in_midst ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION in_midst();
"""

# Takes back what the newest revision made.
WITHOUT_THE_NEWEST = """
DROP TABLE retiring;
DROP FUNCTION outlast_retire_copy, outlast_retire_swap, outlast_drop_retired, outlast_open_homes,
  outlast_make_partition, outlast_monday
"""


@pytest.fixture
async def empty(settings: Settings, postgres_url: str) -> AsyncIterator[Settings]:
    """A database without anything in it."""
    name = f"test_{uuid4().hex}"
    server = await connect(settings.model_copy(update={"database_url": SecretStr(postgres_url)}), "test")
    await server.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    yield settings.model_copy(update={"database_url": SecretStr(in_database(postgres_url, name))})
    await server.execute(f"DROP DATABASE {name} WITH (FORCE)")
    await server.close()


async def until_waiting(session: Session, count: int) -> None:
    async with asyncio.timeout(60):
        while count > await session.fetchval(
            "SELECT count(DISTINCT pid) FROM pg_locks JOIN pg_stat_activity USING (pid) "
            "WHERE NOT granted AND locktype = 'advisory' AND datname = current_database()"
        ):
            await asyncio.sleep(0.02)


async def assert_migrated(session: Session) -> None:
    """At the newest revision, said once, and nothing is locked any more."""
    assert [row["version_num"] for row in await session.fetch("SELECT version_num FROM alembic_version")] == [HEAD]
    async with asyncio.timeout(20):
        while await session.fetchval(
            "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
            "WHERE l.locktype = 'advisory' AND d.datname = current_database()"
        ):
            await asyncio.sleep(0.02)


async def test_replicas_that_migrate_at_once_do_it_once_though_one_is_killed_in_the_midst(
    stack: Stack, empty: Settings
) -> None:
    """Two replicas create the same table, or one that died leaves half a schema or a lock behind."""
    stack.settings = empty
    session = await connect(empty, "test")
    await session.execute(STOP_IN_MIDST)
    await session.execute(f"SELECT pg_advisory_lock({GATE})")
    first = stack.start("migrate")
    await until_waiting(session, 1)
    others = [stack.start("migrate") for _ in range(REPLICAS - 1)]
    await until_waiting(session, REPLICAS)
    await asyncio.to_thread(first.kill)
    await session.execute(f"SELECT pg_advisory_unlock({GATE})")
    for other in others:
        assert await asyncio.to_thread(other.wait, 60) == 0, other.log_tail()
    await assert_migrated(session)

    # Once more, with the newest revision missing.
    await session.execute(f"DROP EVENT TRIGGER in_midst; {WITHOUT_THE_NEWEST}")
    await session.execute("UPDATE alembic_version SET version_num = $1", REVISIONS[-2])
    replicas = [stack.start("migrate") for _ in range(REPLICAS)]
    for replica in replicas:
        assert await asyncio.to_thread(replica.wait, 60) == 0, replica.log_tail()
    await assert_migrated(session)
    await session.close()


async def test_a_worker_and_a_relay_ahead_of_their_schema_wait_and_say_for_what(
    stack: Stack, settings: Settings, db: Database
) -> None:
    """A new worker on the old schema takes jobs and fails them."""
    await _at(db, REVISIONS[0])
    processes: list[Process] = [stack.relay(), stack.worker(HANDLERS)]
    for process in processes:
        await asyncio.to_thread(process.wait_for_output, "run outlast migrate", 60)
    async with db.session() as connection:
        assert await connection.fetchval("SELECT count(*) FROM workers") == 0

    # The schema of a later version is no hindrance: that is how a deploy begins.
    await _at(db, "9999")
    seen = "SELECT count(*) FROM workers WHERE role IN ('relay', 'worker')"
    async with asyncio.timeout(60):
        while await _number(db, seen) < len(processes):
            await asyncio.sleep(0.05)


def test_the_revisions_that_are_known_are_those_there_are() -> None:
    scripts = ScriptDirectory(str(ROOT / "migrations"))
    assert [script.revision for script in scripts.walk_revisions()][::-1] == list(REVISIONS)


async def _at(db: Database, revision: str) -> None:
    async with db.session() as connection:
        await connection.execute("UPDATE alembic_version SET version_num = $1", revision)


async def _number(db: Database, statement: str) -> int:
    async with db.session() as connection:
        return int(await connection.fetchval(statement))
