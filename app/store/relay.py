"""What the relay reads and moves: rows that are due, rows whose time has come or has passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from app.settings import Settings
from app.store.database import Database, Session, away_named, connect, sql

LEADER_LOCK_CLASS = 7237
PRIORITIES = 10
IDLE_SECONDS_LEAST = 10.0


@dataclass(frozen=True, slots=True)
class Look:
    """What to read of one queue: at most `rows_max` rows, of `kinds` (None: any), from ten ids on, one a priority."""

    queue: str
    rows_max: int
    marks: Sequence[UUID]
    kinds: Collection[str] | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A row of the outbox that is due."""

    job_id: UUID
    attempt: int
    priority: int


class Leadership:
    """A session that leads, or waits to. The leader scans on it: who has lost the lock cannot read on."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @classmethod
    async def open(cls, settings: Settings, *, idle_seconds_max: float | None = None) -> Self:
        """A session that does not lead yet, and that the server ends when it is idle for so long.

        That is `LEASE_SECONDS` unless said otherwise, but no less than a pass may wait for the broker.
        Raises `DatabaseAway`.
        """
        idle_seconds = idle_seconds_max or max(settings.lease_seconds, IDLE_SECONDS_LEAST)
        session = await connect(settings, "relay leader")
        async with away_named():
            await session.fetch(sql("relay_plan"), str(round(idle_seconds * 1_000)))
        return cls(session)

    async def try_lead(self) -> bool:
        """Whether this session leads now; it does so until it ends. Raises `DatabaseAway`."""
        async with away_named():
            return await self._session.fetchval(sql("relay_lead"), LEADER_LOCK_CLASS)

    async def hold(self) -> None:
        """Shows that the leader is at work although it has nothing to scan. Raises `DatabaseAway`."""
        async with away_named():
            await self._session.fetch(sql("relay_hold"))

    async def scan(self, looks: Sequence[Look]) -> dict[str, list[Waiting]]:
        """The rows that are due, first priority first, by queue. Raises `DatabaseAway`."""
        async with away_named():
            rows = await self._session.fetch(
                sql("relay_scan"),
                [look.queue for look in looks],
                [look.rows_max for look in looks],
                [mark for look in looks for mark in look.marks],
                [None if look.kinds is None else ",".join(sorted(look.kinds)) for look in looks],
            )
        found: dict[str, list[Waiting]] = {look.queue: [] for look in looks}
        for queue, job_id, attempt, priority in rows:
            found[queue].append(Waiting(job_id, attempt, priority))
        return found

    async def queues(self) -> list[str]:
        """The queues that have rows due. Raises `DatabaseAway`."""
        async with away_named():
            return [row["queue"] for row in await self._session.fetch(sql("waiting_queues"))]

    def close(self) -> None:
        """Ends the session, and leadership with it."""
        self._session.terminate()


class OutboxUpkeep:
    """What time does to the outbox and to what stands around it. Every method may raise `DatabaseAway`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def promote_due(self, limit: int) -> Counter[str]:
        """Makes deferred rows due whose time has come; how many of each queue."""
        return Counter(row["queue"] for row in await self._db.fetch("promote_due", limit))

    async def expire(self, limit: int) -> int:
        """Buries jobs whose deadline passed while they waited; how many."""
        return len(await self._db.fetch("expire", limit))

    async def bury_unknown(self, days: float, limit: int) -> int:
        """Buries jobs whose kind no worker of their queue has known for so long; how many."""
        return len(await self._db.fetch("bury_unknown", days, limit))

    async def gone_workers(self, ids: Sequence[UUID]) -> list[UUID]:
        """Those of `ids` that hold nothing and have not been heard since that was settled, or are unknown."""
        return [row["id"] for row in await self._db.fetch("gone_workers", list(ids))]

    async def make_partitions(self, weeks_ahead: int) -> int:
        """Makes the partitions of the weeks to come; how many."""
        return await self._db.fetchval("make_partitions", weeks_ahead)

    async def prune_workers(self, days: int) -> int:
        """Drops the rows of processes that ended so long ago; how many."""
        return len(await self._db.fetch("prune_workers", days))
