"""The processes that do the work, one row per incarnation, and the rescue of what dead ones held.

An incarnation's id is never reused. Its session advisory lock `(LOCK_CLASS, lock_key)` is free as soon as the
server sees its heartbeat session end, and still held while the process is merely frozen.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from app.settings import Settings
from app.store.database import Connection, Database, away_named, sql

LOCK_CLASS = 7236


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One life of one process. `role` is `worker`, `solo` or `relay`."""

    id: UUID
    role: str
    queues: Sequence[str]
    kinds: Sequence[str]
    slots: int
    transport: str


@dataclass(frozen=True, slots=True)
class Beat:
    """What a heartbeat brought: whether the fleet still counts me, and the leases in my name.

    Those of the jobs `of`; with none, every one.
    """

    known: bool
    leases: frozenset[tuple[UUID, int]]
    of: frozenset[UUID] | None = None


@dataclass(frozen=True, slots=True)
class Live:
    """A process that was heard within the grace."""

    id: UUID
    role: str
    queues: Sequence[str]
    kinds: frozenset[str]
    slots: int
    transport: str
    broker_ok: bool | None
    leader: bool
    draining: bool


@dataclass(frozen=True, slots=True)
class Observed:
    """A process that may hold leases. `gone`: its supervisor, or itself, said that it ended."""

    id: UUID
    heartbeat_at: datetime
    gone: bool


@dataclass(frozen=True, slots=True)
class Suspect:
    """A process called dead at the heartbeat it was seen with; `need_lock` when its lease has not run out."""

    id: UUID
    heartbeat_at: datetime
    need_lock: bool


@dataclass(frozen=True, slots=True)
class Rescued:
    """A job taken back from a lost worker: in the outbox again, or dead of it."""

    job_id: UUID
    queue: str
    dead: bool


async def register(connection: Connection, me: Incarnation) -> int:
    """Enters this incarnation and takes its lock on this session; the key of the lock."""
    async with away_named():
        key: int = await connection.fetchval(
            sql("register_worker"),
            me.id,
            me.role,
            socket.gethostname(),
            os.getpid(),
            list(me.queues),
            list(me.kinds),
            me.slots,
            me.transport,
        )
        await connection.fetchval(sql("lock_incarnation"), LOCK_CLASS, key)
    return key


async def relock(connection: Connection, lock_key: int) -> bool:
    """Takes the incarnation's lock on a new session. False: the old session still holds it, try again."""
    async with away_named():
        return await connection.fetchval(sql("lock_incarnation"), LOCK_CLASS, lock_key)


async def beat(
    connection: Connection,
    worker_id: UUID,
    *,
    broker_ok: bool | None,
    draining: bool = False,
    leader: bool = False,
    of: Sequence[UUID] | None = None,
) -> Beat:
    """Says that I am alive, and asks for my leases: all, or those of some jobs. Raises `DatabaseAway`."""
    async with away_named():
        rows = await connection.fetch(sql("heartbeat"), worker_id, broker_ok, draining, leader, of)
    leases = frozenset((row["job_id"], row["attempt"]) for row in rows if row["job_id"] is not None)
    return Beat(known=rows[0]["known"], leases=leases, of=None if of is None else frozenset(of))


class Fleet:
    """What there is to know and to do about processes. Every method may raise `DatabaseAway`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def live(self, grace_seconds: float) -> list[Live]:
        """Every process heard within the grace."""
        return [
            Live(
                id=row["id"],
                role=row["role"],
                queues=row["queues"],
                kinds=frozenset(row["kinds"]),
                slots=row["slots"],
                transport=row["transport"],
                broker_ok=row["broker_ok"],
                leader=row["leader"],
                draining=row["draining"],
            )
            for row in await self._db.fetch("live_workers", grace_seconds)
        ]

    async def leave(self, worker_id: UUID, cause: str) -> int:
        """Says that the process has ended, or will write nothing more; how many leases are left in its name."""
        rows = await self._db.fetch("leave", worker_id, cause)
        return sum(row["held"] for row in rows)

    async def solo_waiting(self, worker_id: UUID, limit: int) -> list[UUID]:
        """Jobs before their last start, of the queues and kinds of `worker_id`."""
        return [row["job_id"] for row in await self._db.fetch("solo_waiting", worker_id, limit)]


async def observed(connection: asyncpg.Connection) -> list[Observed]:
    """Every process whose leases have not been settled, seen on one session. Raises `DatabaseAway`."""
    async with away_named():
        rows = await connection.fetch(sql("observed_workers"))
    return [Observed(row["id"], row["heartbeat_at"], row["gone"]) for row in rows]


async def rescue(
    connection: asyncpg.Connection, settings: Settings, suspects: Sequence[Suspect], me: UUID
) -> list[Rescued]:
    """Takes every lease of `suspects` back, if each is still as it was seen. Raises `DatabaseAway`.

    Two statements, one transaction: the first waits for claims in flight, so that the second sees their leases.
    """
    suspects = sorted(suspects, key=lambda suspect: suspect.id)
    ids = [suspect.id for suspect in suspects]
    async with away_named(), connection.transaction():
        await connection.fetch(sql("lock_suspects"), ids)
        rows = await connection.fetch(
            sql("rescue"),
            ids,
            [suspect.heartbeat_at for suspect in suspects],
            [suspect.need_lock for suspect in suspects],
            me,
            settings.max_crashes,
            settings.backoff_base_seconds,
            settings.backoff_cap_seconds,
            LOCK_CLASS,
        )
    return _rescued(rows)


async def rescue_overdue(connection: asyncpg.Connection, settings: Settings) -> list[Rescued]:
    """Takes back attempts that ran far past their time although their worker lives. Raises `DatabaseAway`."""
    async with away_named():
        rows = await connection.fetch(
            sql("rescue_overdue"), settings.backoff_base_seconds, settings.backoff_cap_seconds, settings.max_crashes
        )
    return _rescued(rows)


def _rescued(rows: Sequence[asyncpg.Record]) -> list[Rescued]:
    return [Rescued(row["job_id"], row["queue"], row["dead"]) for row in rows]
