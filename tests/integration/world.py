"""A database with jobs in chosen states, moved there by the statements that workers use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from app.domain.leased import LeasedJob
from app.domain.outcomes import Bury, Done, Failure
from app.domain.states import Policy, Reason
from app.settings import Settings
from app.store import fleet
from app.store.database import Database, Session, connect
from app.store.effects import Effects
from app.store.leases import Ended, Leases

KIND = "test.job"
DIGEST = b"digest"


@dataclass
class World:
    """One registered worker, with its lock held, and the jobs it was given."""

    db: Database
    settings: Settings
    session: Session
    worker_id: UUID = field(default_factory=uuid4)

    @property
    def leases(self) -> Leases:
        return Leases(self.db, self.settings, self.worker_id, [KIND])

    async def submit(self, count: int = 1, *, kind: str = KIND, max_retries: int = 2) -> list[UUID]:
        """Jobs in the outbox, due now, in the order of their ids."""
        async with self.db.transaction() as connection:
            rows = await connection.fetch(
                "INSERT INTO jobs (id, kind, queue, priority, input, max_retries, timeout_seconds) "
                "SELECT outlast_uuid_v7(), $1, 'default', 5, '{}', $2, 60 FROM generate_series(1, $3) RETURNING id",
                kind,
                max_retries,
                count,
            )
            ids = sorted(row["id"] for row in rows)
            await connection.execute(
                "INSERT INTO outbox (job_id, kind, queue, priority, timeout_seconds, max_retries) "
                "SELECT id, kind, queue, priority, timeout_seconds, max_retries FROM jobs WHERE id = ANY($1)",
                ids,
            )
        return ids

    async def claim(self, ids: Sequence[UUID]) -> list[LeasedJob]:
        """The jobs as the worker holds them, in the order of their ids."""
        await self.beat()
        return sorted((await self.leases.claim(ids)).jobs, key=lambda job: job.id)

    async def beat(self) -> None:
        await fleet.beat(self.session, self.worker_id, broker_ok=True)

    async def run(self, count: int = 1, **job: Any) -> list[LeasedJob]:
        return await self.claim(await self.submit(count, **job))

    async def finish(self, jobs: Sequence[LeasedJob]) -> set[UUID]:
        return await self.leases.finish_if_leased([Ended(job.id, job.attempt, Done('{"ok":true}')) for job in jobs])

    async def bury(self, jobs: Sequence[LeasedJob], reason: Reason = Reason.PERMANENT_ERROR) -> set[UUID]:
        death = Bury(reason, Failure("ValueError", "no", "f" * 16))
        return await self.leases.bury_if_leased([Ended(job.id, job.attempt, death) for job in jobs])

    async def die(self, count: int = 1, reason: Reason = Reason.PERMANENT_ERROR, **job: Any) -> list[UUID]:
        """Dead letters, in the order of their ids."""
        jobs = await self.run(count, **job)
        assert await self.bury(jobs, reason) == {one.id for one in jobs}
        return [one.id for one in jobs]

    async def die_in_doubt(self, policy: Policy = Policy.AT_MOST_ONCE, key: str = "pay") -> UUID:
        """A dead letter with an intent that has no result."""
        [job] = await self.run()
        await Effects(self.db, self.settings).intent(job.id, job.attempt, key, policy, DIGEST)
        await self.bury([job], Reason.EFFECT_UNKNOWN)
        return job.id

    async def row(self, table: str, job_id: UUID) -> dict[str, Any] | None:
        """The row of a job in one of its homes."""
        async with self.db.session() as connection:
            row = await connection.fetchrow(f"SELECT * FROM {table} WHERE job_id = $1", job_id)
        return None if row is None else dict(row)

    async def actions(self, job_id: UUID) -> list[tuple[str, str, str | None]]:
        """Actor, action and reason of what operators did to a job, oldest first."""
        async with self.db.session() as connection:
            rows = await connection.fetch(
                "SELECT actor, action, reason FROM operator_actions WHERE job_id = $1 ORDER BY id", job_id
            )
        return [(row["actor"], row["action"], row["reason"]) for row in rows]

    async def until_waiting_for_locks(self, count: int) -> None:
        """Returns once `count` sessions of this database wait for somebody else's lock."""
        async with self.db.session() as connection:
            while count > await connection.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            ):
                await asyncio.sleep(0.01)

    async def execute(self, statement: str, *args: Any) -> None:
        """Something only a test does to the database."""
        async with self.db.session() as connection:
            await connection.execute(statement, *args)


@asynccontextmanager
async def opened(db: Database, settings: Settings) -> AsyncIterator[World]:
    session = await connect(settings, "test worker")
    world = World(db, settings, session)
    me = fleet.Incarnation(world.worker_id, "worker", ["default"], [KIND], 10, "pg")
    await fleet.register(session, me)
    try:
        yield world
    finally:
        session.terminate()
