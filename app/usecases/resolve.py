"""Resolve: an operator found out whether an effect happened."""

from __future__ import annotations

from uuid import UUID

from app.domain import jsontext
from app.domain.errors import Refused
from app.domain.standing import job_not_found, unresolvable
from app.domain.states import EffectState, State
from app.settings import Settings
from app.store import operations
from app.store.database import Database


async def resolve_performed(
    db: Database, settings: Settings, job_id: UUID, key: str, *, result: str, reason: str, actor: str
) -> None:
    """The effect happened: `result` (JSON text) goes on record, as if the handler had written it.

    Raises `JsonRefused`; `Refused`: 404 `job-not-found`, `effect-not-found`; 409 `job-not-dead`,
    `job-terminal`, `effect-resolved`; 413 `result-too-large`; `DatabaseAway`.
    """
    jsontext.parse(result)
    if len(result.encode()) > settings.max_effect_bytes:
        raise Refused("result-too-large", 413, f"The result is larger than {settings.max_effect_bytes} bytes.")
    if not await operations.resolve_performed(db, job_id, key, result, reason, actor):
        raise await _why_not(db, job_id, key)


async def resolve_not_performed(
    db: Database, settings: Settings, job_id: UUID, key: str, *, forced: bool, reason: str, actor: str
) -> None:
    """The effect did not happen: the next attempt may perform it.

    Refused with 409 `effect-in-flight` unless the worker that began it is certainly gone; `forced`
    overrides that and is audited. Raises as `resolve_performed` does.
    """
    lease_seconds = settings.lease_seconds
    if not await operations.resolve_not_performed(db, job_id, key, lease_seconds, reason, actor, forced=forced):
        raise await _why_not(db, job_id, key)


async def _why_not(db: Database, job_id: UUID, key: str) -> Refused:
    standing = (await operations.standing(db, [job_id])).get(job_id)
    if standing is None:
        return job_not_found(job_id)
    if standing.state is not State.DEAD:
        return unresolvable(standing)
    about = {"job_id": str(job_id)}
    state = await operations.effect_state(db, job_id, key)
    if state is None:
        return Refused("effect-not-found", 404, f"The job has no effect {key!r}.", extra=about)
    if state is not EffectState.INTENT:
        return Refused("effect-resolved", 409, f"The effect {key!r} is {state} already.", extra=about)
    detail = "The worker that began the effect may still be alive; wait until it is gone, or --force."
    return Refused("effect-in-flight", 409, detail, extra=about)
