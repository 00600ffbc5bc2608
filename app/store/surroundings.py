"""What stands around a job and around the process: live processes, place in the queue, holder of a lease."""

from __future__ import annotations

from uuid import UUID

from app.domain.explain import COUNT_MAX, Fleet, Holder
from app.store.database import Database


async def fleet(db: Database, silence_seconds: float, queue: str | None = None, kind: str | None = None) -> Fleet:
    """The live processes, counted; workers only of `queue`, knowing only of `kind`. Raises `DatabaseAway`."""
    row = await db.fetchrow("fleet", silence_seconds, queue, kind)
    assert row is not None
    return Fleet(**row)


async def busy_slots(db: Database, queue: str) -> int:
    """Leases of a queue; counts to 10,000. Raises `DatabaseAway`."""
    return int(await db.fetchval("busy_slots", queue, COUNT_MAX))


async def place_in_queue(db: Database, job_id: UUID) -> tuple[bool, int]:
    """Whether the job's last start waits for a process of its own, and how many due jobs go first (to 10,000).

    (False, 0) for a job that no longer waits. Raises `DatabaseAway`.
    """
    row = await db.fetchrow("place_in_queue", job_id, COUNT_MAX)
    return (row["solo"], row["ahead"]) if row else (False, 0)


async def holder(db: Database, job_id: UUID) -> Holder | None:
    """The worker that holds the job's lease, None without a lease. Raises `DatabaseAway`."""
    row = await db.fetchrow("holder", job_id)
    return Holder(**row) if row else None
