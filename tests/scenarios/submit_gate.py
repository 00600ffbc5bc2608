"""A place in the statement of a submit where it waits: the key and the job are inserted, nothing is committed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.settings import Settings
from app.store.database import Database, connect

GATE = 7_240_001
POLL_SECONDS = 0.01

INSTALL = f"""
CREATE FUNCTION submit_gate() RETURNS trigger LANGUAGE plpgsql AS
  $$BEGIN PERFORM pg_advisory_xact_lock_shared({GATE}); RETURN NEW; END$$;
CREATE TRIGGER submit_gate BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION submit_gate();
"""


async def install(db: Database) -> None:
    """Puts the gate into this test's database; it holds up nobody until `closed`."""
    async with db.session() as connection:
        await connection.execute(INSTALL)


@asynccontextmanager
async def closed(settings: Settings) -> AsyncIterator[None]:
    """For as long as the block runs, a submit stops at the gate."""
    gate = await connect(settings, "gate")
    try:
        await gate.execute(f"SELECT pg_advisory_lock({GATE})")
        yield
    finally:
        await gate.close()


async def blocked(db: Database, *, at_gate: bool = False) -> list[int]:
    """The sessions of this database that wait for a lock; `at_gate`: of those, the ones that got that far."""
    condition = f"locktype = 'advisory' AND objid = {GATE}" if at_gate else "true"
    async with db.session() as connection:
        rows = await connection.fetch(
            "SELECT DISTINCT pid FROM pg_locks JOIN pg_stat_activity USING (pid) "
            f"WHERE NOT granted AND datname = current_database() AND {condition}"
        )
    return [row["pid"] for row in rows]


async def until_blocked(db: Database, sessions: int, seconds: float = 20) -> None:
    """Returns once so many sessions wait for a lock."""
    async with asyncio.timeout(seconds):
        while len(await blocked(db)) < sessions:
            await asyncio.sleep(POLL_SECONDS)


async def end_session_at_gate(db: Database) -> None:
    """What waits at the gate is rolled back: its session is ended."""
    async with db.session() as connection:
        for pid in await blocked(db, at_gate=True):
            await connection.execute(f"SELECT pg_terminate_backend({pid})")
