"""Reads for callers and operators: pages of ids, hydrate, timeline, effects. Nothing here writes.

A list is two statements. A page takes ids from the one table its state lives in, looks at no more
than `LOOK_MAX` of them and says where it stopped; hydrate turns ids into jobs in one snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from app.domain.filters import DeadFilter, JobFilter
from app.domain.instants import uuid_floor
from app.domain.states import State
from app.domain.timeline import Action, Attempt
from app.domain.views import EffectView, JobView
from app.store.database import Database, Record

LOOK_MAX = 20_000
ATTEMPTS_MAX = 1_000
EFFECTS_MAX = 1_000
ACTIONS_MAX = 1_000

_LEAST_ID = UUID(int=0)
_GREATEST_ID = UUID(int=(1 << 128) - 1)
_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
_FAR_OFF = datetime(9999, 12, 31, tzinfo=UTC)

_PAGE_OF: dict[State | None, str] = {
    None: "page_jobs",
    State.SCHEDULED: "page_outbox",
    State.QUEUED: "page_outbox",
    State.RETRYING: "page_outbox",
    State.LEASED: "page_leases",
    State.RUNNING: "page_leases",
    State.DEAD: "page_dead",
    State.DONE: "page_done",
    State.CANCELLED: "page_cancelled",
}
_SHARED_HOMES = frozenset({"page_outbox", "page_leases"})


@dataclass(frozen=True, slots=True)
class Ids:
    """Ids of one page, in the order of the list. `stopped` is where to go on, None at the end."""

    ids: list[UUID]
    stopped: UUID | None


@dataclass(frozen=True, slots=True)
class DeadIds:
    """Ids of one page of dead letters. `stopped` is the death and id to go on from, None at the end."""

    ids: list[UUID]
    stopped: tuple[datetime, UUID] | None


async def page(db: Database, filters: JobFilter, limit: int, before: UUID | None, *, look_max: int = LOOK_MAX) -> Ids:
    """Up to `limit` ids that match, newest first, behind `before`. Raises `DatabaseAway`."""
    name = _PAGE_OF[filters.state]
    below = min(before or _GREATEST_ID, uuid_floor(filters.until) if filters.until else _GREATEST_ID)
    least = uuid_floor(filters.since) if filters.since else _LEAST_ID
    shared = (filters.state,) if name in _SHARED_HOMES else ()
    rows = await db.fetch(name, below, least, filters.kind, filters.queue, limit + 1, look_max, *shared)
    kept, last = _cut(rows, limit, look_max)
    return Ids([row["id"] for row in kept], last["id"] if last else None)


async def page_dead_letters(
    db: Database,
    filters: DeadFilter,
    limit: int,
    before: tuple[datetime, UUID] | None,
    *,
    look_max: int = LOOK_MAX,
) -> DeadIds:
    """Up to `limit` ids that match, newest death first, behind `before`. Raises `DatabaseAway`."""
    until = (filters.until or _FAR_OFF, _LEAST_ID)
    died_at, job_id = min(before, until) if before else until
    rows = await db.fetch(
        "page_dead_letters",
        died_at,
        job_id,
        filters.since or _LONG_AGO,
        filters.kind,
        filters.queue,
        filters.reason,
        filters.fingerprint,
        limit + 1,
        look_max,
    )
    kept, last = _cut(rows, limit, look_max)
    return DeadIds([row["id"] for row in kept], (last["died_at"], last["id"]) if last else None)


def _cut(rows: list[Record], limit: int, look_max: int) -> tuple[list[Record], Record | None]:
    """The wanted rows of a page, and the row behind which the next one begins."""
    if len(rows) > limit:
        return rows[:limit], rows[limit - 1]
    stopped = rows[-1] if rows and rows[-1]["looked"] == look_max else None
    return [row for row in rows if row["wanted"]], stopped


async def hydrate(db: Database, ids: Sequence[UUID], *, payloads: bool) -> dict[UUID, JobView]:
    """The jobs with these ids, in one snapshot; unknown ids are left out. Raises `DatabaseAway`."""
    if not ids:
        return {}
    return {row["id"]: _job(row) for row in await db.fetch("hydrate", sorted(ids), payloads)}


async def settled(db: Database, ids: Sequence[UUID]) -> set[UUID]:
    """Which of these jobs are done, cancelled or dead. Raises `DatabaseAway`."""
    return {row["job_id"] for row in await db.fetch("settled", sorted(ids))} if ids else set()


async def attempts(db: Database, job_id: UUID) -> list[Attempt]:
    """The newest 1,000 attempts of a job, oldest first. Raises `DatabaseAway`."""
    rows = await db.fetch("timeline_attempts", job_id, ATTEMPTS_MAX)
    return [Attempt(**row) for row in reversed(rows)]


async def effects(db: Database, job_id: UUID) -> list[EffectView]:
    """The first 1,000 effects of a job with their results, in the order begun. Raises `DatabaseAway`."""
    return [EffectView(**row) for row in await db.fetch("effects_of_job", job_id, EFFECTS_MAX)]


async def effect_marks(db: Database, job_id: UUID) -> list[EffectView]:
    """As `effects`, without the results. Raises `DatabaseAway`."""
    return [EffectView(**row, result=None) for row in await db.fetch("effect_marks", job_id, EFFECTS_MAX)]


async def actions(db: Database, job_id: UUID) -> list[Action]:
    """What operators did to a job, oldest first. Raises `DatabaseAway`."""
    return [Action(**row) for row in reversed(await db.fetch("actions_on_job", job_id, ACTIONS_MAX))]


def _job(row: Record) -> JobView:
    values = dict(row)
    if values["state"] is None:
        values |= {"attempt": 0, "retries": 0, "crashes": 0, "releases": 0}
    else:
        values["state"] = State(values["state"])
    return JobView(**values)
