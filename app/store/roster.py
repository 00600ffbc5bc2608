"""Processes and queues as an operator lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.domain.explain import COUNT_MAX
from app.store.database import Database
from app.store.gauges import queues

WORKERS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Listed:
    """One incarnation of a process. `silent_seconds` since its last heartbeat, `running` leases in its name."""

    id: UUID
    role: str
    host: str
    pid: int
    queues: Sequence[str]
    kinds: Sequence[str]
    slots: int
    transport: str
    broker_ok: bool | None
    leader: bool
    draining: bool
    started_at: datetime
    heartbeat_at: datetime
    left_at: datetime | None
    left_cause: str | None
    silent_seconds: float
    running: int


@dataclass(frozen=True, slots=True)
class Lane:
    """A queue now. Counts stop at 10,000; `oldest_seconds` is None when nothing is due."""

    queue: str
    waiting: int
    deferred: int
    running: int
    dead: int
    oldest_seconds: float | None
    workers: int
    slots: int


async def workers(db: Database, *, left_too: bool) -> list[Listed]:
    """Processes that have not left, or all on record; newest first, at most 1,000. Raises `DatabaseAway`."""
    return [Listed(**row) for row in await db.fetch("list_workers", left_too, WORKERS_MAX)]


async def lanes(db: Database, grace_seconds: float) -> list[Lane]:
    """Every queue that holds a job or is served by a live worker, by name. Raises `DatabaseAway`."""
    served = {row["queue"]: row for row in await db.fetch("queue_lanes", grace_seconds, COUNT_MAX)}
    depths = {depth.queue: depth for depth in await queues(db)}
    return [
        Lane(
            queue=name,
            waiting=depths[name].waiting if name in depths else 0,
            running=depths[name].running if name in depths else 0,
            oldest_seconds=depths[name].oldest_seconds if name in depths else None,
            deferred=served[name]["deferred"] if name in served else 0,
            dead=served[name]["dead"] if name in served else 0,
            workers=served[name]["workers"] if name in served else 0,
            slots=served[name]["slots"] if name in served else 0,
        )
        for name in sorted(served.keys() | depths.keys())
    ]
