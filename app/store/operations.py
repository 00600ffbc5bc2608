"""What callers and operators do to jobs: each one guarded statement that also writes who, when and why.

Every method raises `DatabaseAway`. Zero rows is a legal answer to all of them; `standing` tells why.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from app.domain.standing import Standing
from app.domain.states import EffectState, Home, State
from app.store.database import Database, Record
from app.store.fleet import LOCK_CLASS


async def cancel_if_open(db: Database, job_id: UUID, reason: str | None, actor: str) -> bool:
    """Outbox or leases → outcomes. False is no proof that the job is in neither: it may be moving."""
    return await db.fetchval("cancel_if_open", job_id, reason, actor) is not None


async def retry_if_in_budget(
    db: Database, job_id: UUID, reason: str | None, actor: str, crashes_max: int
) -> str | None:
    """Dead letter → outbox, one retry charged. The queue it is in, or None."""
    queue: str | None = await db.fetchval("retry_if_in_budget", job_id, reason, actor, crashes_max)
    return queue


async def replay_if_dead(db: Database, replay_id: str, ids: Sequence[UUID], reason: str, actor: str) -> dict[UUID, str]:
    """Dead letters → outbox with new budgets, each once per replay id. The jobs moved, with their queues."""
    rows = await db.fetch("replay_if_dead", replay_id, sorted(ids), reason, actor)
    return {row["job_id"]: row["queue"] for row in rows}


async def replayed_items(db: Database, replay_id: str, ids: Sequence[UUID]) -> set[UUID]:
    """Those of the jobs that this replay has moved before."""
    return {row["job_id"] for row in await db.fetch("replayed_items", replay_id, list(ids))}


async def count_replayed(db: Database, replay_id: str) -> int:
    count: int = await db.fetchval("count_replayed", replay_id)
    return count


async def discard_if_dead(db: Database, ids: Sequence[UUID], reason: str, actor: str) -> set[UUID]:
    """Dead letters → outcomes (cancelled, reason `discarded`). The jobs ended."""
    return {row["job_id"] for row in await db.fetch("discard_if_dead", sorted(ids), reason, actor)}


async def resolve_performed(db: Database, job_id: UUID, key: str, result: str, reason: str, actor: str) -> bool:
    """An intent of a dead job gets its result (JSON text)."""
    return await db.fetchval("resolve_performed", job_id, key, result, reason, actor) is not None


async def resolve_not_performed(
    db: Database, job_id: UUID, key: str, lease_seconds: float, reason: str, actor: str, *, forced: bool
) -> bool:
    """An intent of a dead job is cleared, if its writer is certainly gone or `forced`."""
    args = (job_id, key, lease_seconds, LOCK_CLASS, forced, reason, actor)
    return await db.fetchval("resolve_not_performed", *args) is not None


async def effect_state(db: Database, job_id: UUID, key: str) -> EffectState | None:
    state: str | None = await db.fetchval("effect_state", job_id, key)
    return None if state is None else EffectState(state)


async def standing(db: Database, ids: Sequence[UUID]) -> dict[UUID, Standing]:
    """Where the jobs stand, in one snapshot. Jobs that do not exist are left out."""
    return {row["job_id"]: _standing(row) for row in await db.fetch("standing", sorted(ids))}


async def wake_queues(db: Database, queues: Sequence[str]) -> None:
    """Tells relay and workers that these queues have work due."""
    await db.fetch("wake_queues", sorted(set(queues)))


def _standing(row: Record) -> Standing:
    home, state = row["home"], row["state"]
    return Standing(
        job_id=row["job_id"],
        home=None if home is None else Home(home),
        state=None if state is None else State(state),
        reason=row["reason"],
        retries=row["retries"] or 0,
        max_retries=row["max_retries"],
        expired=row["expired"],
        blocked=row["blocked"],
    )
