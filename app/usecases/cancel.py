"""Cancel: out of the outbox or the leases, for ever."""

from __future__ import annotations

from uuid import UUID

from app.domain.standing import job_not_found, restless, terminal
from app.domain.states import Home, State
from app.store import operations
from app.store.database import Database

TRIES_MAX = 50


async def cancel(db: Database, job_id: UUID, *, reason: str | None, actor: str) -> bool:
    """Cancels a job that has not ended. False: it was cancelled before.

    One try can miss a job that moves between outbox and leases while it looks, so it is repeated
    until it moved the job or the job has ended. A worker that runs it learns so with its next
    heartbeat; nothing it writes counts from now on.

    Raises `Refused`: 404 `job-not-found`, 409 `job-terminal`, 503 `job-moving`; `DatabaseAway`.
    """
    for _ in range(TRIES_MAX):
        if await operations.cancel_if_open(db, job_id, reason, actor):
            return True
        standing = (await operations.standing(db, [job_id])).get(job_id)
        if standing is None:
            raise job_not_found(job_id)
        if standing.state is State.CANCELLED:
            return False
        if standing.home in {Home.OUTCOMES, Home.DEAD_LETTERS}:
            raise terminal(standing)
    raise restless(job_id)
