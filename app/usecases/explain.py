"""Explains a job: reads what its state depends on, and lets the domain decide."""

from __future__ import annotations

from uuid import UUID

from app.domain.explain import Clocks, Explanation, Fleet, Surroundings
from app.domain.explain import explain as decide
from app.domain.states import EffectState, Policy, State
from app.domain.views import JobView
from app.settings import Settings
from app.store import reading, surroundings
from app.store.database import Database
from app.usecases import read

SECONDS_PER_DAY = 86_400


async def explain(db: Database, settings: Settings, job_id: UUID) -> Explanation:
    """Why the job is where it is, what happens next, and who must act.

    Raises `Refused` (404 `job-not-found`) and `DatabaseAway`.
    """
    job = await read.job(db, job_id)
    fleet = await surroundings.fleet(db, settings.suspect_seconds, job.queue, job.kind)
    return decide(job, await _around(db, job, fleet, _clocks(settings)))


async def _around(db: Database, job: JobView, fleet: Fleet, clocks: Clocks) -> Surroundings:
    match job.state:
        case State.QUEUED:
            solo, ahead = await surroundings.place_in_queue(db, job.id)
            busy = await surroundings.busy_slots(db, job.queue)
            return Surroundings(fleet, clocks, busy=busy, ahead=ahead, solo=solo)
        case State.LEASED | State.RUNNING:
            return Surroundings(fleet, clocks, holder=await surroundings.holder(db, job.id))
        case State.DEAD:
            marks = await reading.effect_marks(db, job.id)
            unknown = [m.key for m in marks if m.state == EffectState.INTENT and m.policy != Policy.REPEATABLE]
            return Surroundings(fleet, clocks, unknown_effects=unknown)
        case _:
            return Surroundings(fleet, clocks)


def _clocks(settings: Settings) -> Clocks:
    return Clocks(
        suspect_seconds=settings.suspect_seconds,
        lease_seconds=settings.lease_seconds,
        republish_seconds=settings.republish_seconds,
        unknown_kind_seconds=settings.unknown_kind_days * SECONDS_PER_DAY,
        broker=settings.transport != "pg",
    )
