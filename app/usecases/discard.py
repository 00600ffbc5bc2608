"""Discard: an operator gives dead letters up; they end as cancelled, reason `discarded`."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from app.domain.answers import Answer, refusal
from app.domain.standing import job_not_found, undiscardable
from app.store import operations
from app.store.database import Database

DISCARDED = "discarded"


async def discard(db: Database, ids: Sequence[UUID], *, reason: str, actor: str) -> list[Answer]:
    """Ends dead letters for good. One answer per job, in the order given; their errors stay in the audit.

    Refusals: 404 `job-not-found`; 409 `job-terminal`, `job-not-dead`. Raises `DatabaseAway`.
    """
    ended = await operations.discard_if_dead(db, ids, reason, actor)
    left = [job_id for job_id in ids if job_id not in ended]
    standings = await operations.standing(db, left) if left else {}
    return [
        Answer(job_id, DISCARDED)
        if job_id in ended
        else refusal(job_id, undiscardable(standings[job_id]) if job_id in standings else job_not_found(job_id))
        for job_id in ids
    ]
