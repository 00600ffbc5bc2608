"""Reads for callers and operators, over whatever edge: jobs, lists, results, effects, dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from app.domain.cursor import dead_cursor, dead_position, job_cursor, job_position
from app.domain.errors import Refused
from app.domain.filters import DeadFilter, JobFilter
from app.domain.states import TERMINAL, State
from app.domain.timeline import Timeline, assemble
from app.domain.views import EffectView, JobView, JsonText, Page
from app.store import reading
from app.store.database import Database

LIMIT_DEFAULT = 50
LIMIT_MAX = 200


async def job(db: Database, job_id: UUID) -> JobView:
    """The job with its input and, once done, its result.

    Raises `Refused` (404 `job-not-found`) and `DatabaseAway`.
    """
    found = await reading.hydrate(db, [job_id], payloads=True)
    if job_id not in found:
        raise _no_such_job(job_id)
    return found[job_id]


async def jobs_by_id(db: Database, job_ids: Sequence[UUID], *, payloads: bool = False) -> dict[UUID, JobView]:
    """The jobs among these ids that exist, in one snapshot. Raises `DatabaseAway`."""
    return await reading.hydrate(db, job_ids, payloads=payloads)


async def jobs(db: Database, filters: JobFilter, *, limit: int = LIMIT_DEFAULT, cursor: str | None = None) -> Page:
    """Jobs that match, newest first, without input and result.

    Raises `Refused` (422 `invalid-cursor`) and `DatabaseAway`.
    """
    before = job_position(filters, cursor) if cursor is not None else None
    ids = await reading.page(db, filters, limit, before)
    found = await reading.hydrate(db, ids.ids, payloads=False)
    data = [found[i] for i in ids.ids if i in found and filters.state in (None, found[i].state)]
    return Page(data, job_cursor(filters, ids.stopped) if ids.stopped else None)


async def dead_letters(
    db: Database, filters: DeadFilter, *, limit: int = LIMIT_DEFAULT, cursor: str | None = None
) -> Page:
    """Dead jobs that match, newest death first, without their input.

    Raises `Refused` (422 `invalid-cursor`) and `DatabaseAway`.
    """
    before = dead_position(filters, cursor) if cursor is not None else None
    ids = await reading.page_dead_letters(db, filters, limit, before)
    found = await reading.hydrate(db, ids.ids, payloads=False)
    data = [found[i] for i in ids.ids if i in found and found[i].state is State.DEAD]
    return Page(data, dead_cursor(filters, *ids.stopped) if ids.stopped else None)


async def dead_letter(db: Database, job_id: UUID) -> JobView:
    """The dead job with its input.

    Raises `Refused` (404 `dead-letter-not-found` when there is none or it is not dead) and `DatabaseAway`.
    """
    found = (await reading.hydrate(db, [job_id], payloads=True)).get(job_id)
    if found is None or found.state is not State.DEAD:
        raise Refused("dead-letter-not-found", 404, f"No dead letter {job_id}.", extra={"job_id": str(job_id)})
    return found


async def result(db: Database, job_id: UUID) -> JsonText:
    """The result of a done job as JSON text.

    Raises `Refused` (404; 409 `result-not-ready` before the end, `job-did-not-succeed` after another
    end) and `DatabaseAway`.
    """
    found = await job(db, job_id)
    if found.result is not None:
        return found.result
    extra = {"job_id": str(job_id), "state": found.state, "reason": found.reason}
    if found.state in TERMINAL:
        raise Refused("job-did-not-succeed", 409, f"The job is {found.state}: it has no result.", extra=extra)
    raise Refused("result-not-ready", 409, f"The job is {found.state}: it has no result yet.", extra=extra)


async def effects(db: Database, job_id: UUID) -> list[EffectView]:
    """The first 1,000 effects of a job in the order they were begun.

    Raises `Refused` (404 `job-not-found`) and `DatabaseAway`.
    """
    found = await reading.effects(db, job_id)
    if not found:
        await job(db, job_id)
    return found


async def timeline(db: Database, job_id: UUID) -> Timeline:
    """What happened to a job, in order. Raises `Refused` (404 `job-not-found`) and `DatabaseAway`."""
    found = await job(db, job_id)
    attempts = await reading.attempts(db, job_id)
    marks = await reading.effect_marks(db, job_id)
    return assemble(found, attempts, marks, await reading.actions(db, job_id))


async def settled(db: Database, job_ids: Sequence[UUID]) -> set[UUID]:
    """Which of these jobs are done, cancelled or dead. Raises `DatabaseAway`."""
    return await reading.settled(db, job_ids)


def _no_such_job(job_id: UUID) -> Refused:
    return Refused("job-not-found", 404, f"No job {job_id}.", extra={"job_id": str(job_id)})
