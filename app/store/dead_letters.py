"""Dead letters as sets: by filter, by what they would touch, by how they failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.domain.filters import DeadFilter
from app.domain.impact import Impact
from app.store.database import Database

GROUPS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class DeadGroup:
    """Dead letters that failed alike. `latest_id`, `error_type` and `error_message` are those of the last death."""

    kind: str
    reason: str
    fingerprint: str
    jobs: int
    first_died_at: datetime
    last_died_at: datetime
    latest_id: UUID
    error_type: str | None
    error_message: str | None


async def select_dead(db: Database, filters: DeadFilter, after: UUID | None, limit: int) -> list[UUID]:
    """The next `limit` dead letters that match, ascending, behind `after`. Raises `DatabaseAway`."""
    reason = None if filters.reason is None else filters.reason.value
    args = (filters.kind, reason, filters.queue, filters.fingerprint, filters.since, filters.until)
    return [row["job_id"] for row in await db.fetch("select_dead", *args, after, limit)]


async def dead_impact(db: Database, ids: Sequence[UUID]) -> list[Impact]:
    """What replaying these jobs would touch; those that are not dead are left out. Raises `DatabaseAway`."""
    return [Impact(**row) for row in await db.fetch("dead_impact", sorted(ids))]


async def dead_groups(db: Database) -> list[DeadGroup]:
    """Dead letters that failed alike, largest group first, at most 1,000 groups. Raises `DatabaseAway`."""
    return [DeadGroup(**row) for row in await db.fetch("dead_groups", GROUPS_MAX)]
