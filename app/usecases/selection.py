"""Which dead letters an operator means, in batches, and what running them again would touch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from app.domain.filters import DeadFilter
from app.domain.impact import Impact, merged
from app.store import dead_letters, operations
from app.store.arrivals import clock
from app.store.database import Database

BATCH_MAX = 500


@dataclass(frozen=True, slots=True)
class Selection:
    """Jobs by id, or else every dead letter that matches `filters`; at most `limit` of them."""

    ids: Sequence[UUID] | None = None
    filters: DeadFilter = field(default_factory=DeadFilter)
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """What a selection comes to now. `jobs` counts what a replay of this id has moved before, too."""

    jobs: int
    impact: list[Impact]


async def pinned(db: Database, selection: Selection, replay_id: str | None = None) -> Selection:
    """The same selection, closed to what dies from now on: a job that is replayed and dies is not met again.

    What a replay of this id has moved before counts against the limit. Raises `DatabaseAway`.
    """
    if selection.ids is not None:
        return selection
    if selection.limit is not None and replay_id is not None:
        before = await operations.count_replayed(db, replay_id)
        selection = replace(selection, limit=max(0, selection.limit - before))
    if selection.filters.until is not None:
        return selection
    return replace(selection, filters=replace(selection.filters, until=await clock(db)))


async def batches(db: Database, selection: Selection, *, size: int = BATCH_MAX) -> AsyncIterator[list[UUID]]:
    """The jobs meant, ascending where they are found by filter, in batches of 1..`size`. Raises `DatabaseAway`."""
    left = selection.limit
    after: UUID | None = None
    start = 0
    while left is None or left > 0:
        wanted = size if left is None else min(size, left)
        if selection.ids is not None:
            batch = list(selection.ids[start : start + wanted])
            start += wanted
        else:
            batch = await dead_letters.select_dead(db, selection.filters, after, wanted)
        if not batch:
            return
        yield batch
        after = batch[-1]
        left = None if left is None else left - len(batch)


async def survey(db: Database, selection: Selection, replay_id: str | None = None) -> Survey:
    """Counts the selection and what replaying it would touch. Raises `DatabaseAway`."""
    before = await operations.count_replayed(db, replay_id) if replay_id and selection.ids is None else 0
    jobs = before
    impact: list[Impact] = []
    async for batch in batches(db, selection):
        again = await operations.replayed_items(db, replay_id, batch) if before and replay_id else set[UUID]()
        jobs += len(batch) - len(again)
        impact = merged([*impact, *await dead_letters.dead_impact(db, batch)])
    return Survey(jobs, impact)
