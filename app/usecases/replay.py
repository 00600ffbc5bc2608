"""Replay: an operator runs dead letters again with fresh budgets."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from app.domain.answers import Answer, refusal
from app.domain.standing import job_not_found, unreplayable
from app.failpoints import Point, reach
from app.store import operations
from app.store.database import Database
from app.usecases.awaken import awaken

REPLAYED = "replayed"
REPLAYED_BEFORE = "replayed_before"


async def replay(db: Database, ids: Sequence[UUID], *, replay_id: str, reason: str, actor: str) -> list[Answer]:
    """Puts dead letters back into the outbox, due now. One answer per job, in the order given.

    A job is moved once per `replay_id`, however often that is sent: `replayed_before` says that it was.
    Refusals: 404 `job-not-found`; 409 `job-terminal`, `job-not-dead`, `effect-unknown`, `job-moving`.
    Raises `DatabaseAway`; then nothing is known, and sending the same `replay_id` again is safe.
    """
    reach(Point.REPLAY_BEFORE_COMMIT)
    moved = await operations.replay_if_dead(db, replay_id, ids, reason, actor)
    reach(Point.REPLAY_AFTER_COMMIT)
    await awaken(db, set(moved.values()))
    left = [job_id for job_id in ids if job_id not in moved]
    answers = {job_id: Answer(job_id, REPLAYED) for job_id in moved} | await _why_not(db, replay_id, left)
    return [answers[job_id] for job_id in ids]


async def _why_not(db: Database, replay_id: str, ids: Sequence[UUID]) -> dict[UUID, Answer]:
    if not ids:
        return {}
    standings = await operations.standing(db, ids)
    answers = {
        job_id: refusal(job_id, unreplayable(standings[job_id]) if job_id in standings else job_not_found(job_id))
        for job_id in ids
    }
    before = await operations.replayed_items(db, replay_id, ids)
    return answers | {job_id: Answer(job_id, REPLAYED_BEFORE) for job_id in before}
