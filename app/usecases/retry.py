"""Retry: a caller's further attempt, inside the budget the job was submitted with."""

from __future__ import annotations

from uuid import UUID

from app.domain.standing import job_not_found, unretryable
from app.settings import Settings
from app.store import operations
from app.store.database import Database
from app.usecases.awaken import awaken


async def retry(db: Database, settings: Settings, job_id: UUID, *, reason: str | None, actor: str) -> None:
    """Puts a dead job back into the outbox, due now, and charges one retry. Crashes stay charged.

    Raises `Refused`: 404 `job-not-found`; 409 `retry-budget-exhausted`, `job-terminal`, `job-not-dead`,
    `deadline-passed`, `effect-unknown`; `DatabaseAway`.
    """
    queue = await operations.retry_if_in_budget(db, job_id, reason, actor, settings.max_crashes)
    if queue is not None:
        await awaken(db, [queue])
        return
    standing = (await operations.standing(db, [job_id])).get(job_id)
    raise job_not_found(job_id) if standing is None else unretryable(standing)
