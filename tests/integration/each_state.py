"""One job in each state, each with a past: lost once, retried once, released once."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

from app.domain.leased import LeasedJob
from app.domain.outcomes import Failure, Release, Retry
from app.domain.request import key_digest
from app.domain.states import Policy, State
from app.settings import Settings
from app.store import fleet, jobs
from app.store.database import Database, Session
from app.store.effects import Effects
from app.store.fleet import Fleet, Incarnation, Suspect
from app.store.jobs import NewJob
from app.store.leases import Ended
from app.store.operations import cancel_if_open
from tests.integration.world import DIGEST, KIND, World

FAILURE = Failure("ValueError", "no", "f" * 16)
LATER_SECONDS = 3_600.0
BEFORE, MINE = "before", "mine"
STATES = (
    State.SCHEDULED,
    State.QUEUED,
    State.RETRYING,
    State.RUNNING,
    State.DEAD,
    State.DONE,
    State.CANCELLED,
)


def new_job(queue: str, key: str, *, delay_seconds: float | None = None) -> NewJob:
    digest = key_digest("default", f"{queue}/{key}")
    return NewJob("default", KIND, queue, 5, "{}", None, 3, LATER_SECONDS, None, delay_seconds, None, digest, digest)


async def hired(db: Database, settings: Settings, session: Session, queue: str) -> World:
    """A new worker of this queue; its lock is held by `session`."""
    world = World(db, settings, session)
    await fleet.register(session, Incarnation(world.worker_id, "worker", [queue], [KIND], 10, "pg"))
    return world


async def one_in_each_state(worker: World, queue: str) -> dict[State, UUID]:
    """Seven jobs; the running one is the worker's. All but the scheduled one had three attempts, most had a fourth.

    Each of the last four has two intents: `before` (reconcile) by an attempt of this worker that was released, and
    `mine` (repeatable) by its last attempt.
    """
    waits = {State.SCHEDULED: LATER_SECONDS}
    inserted = await jobs.insert(worker.db, [new_job(queue, state, delay_seconds=waits.get(state)) for state in STATES])
    ids = {state: one.id for state, one in zip(STATES, inserted, strict=True) if one is not None}
    tried = [ids[state] for state in STATES[1:]]
    await lose(worker, queue, tried)
    held = await worker.claim(tried)
    await worker.leases.retry_if_leased([Ended(job.id, job.attempt, Retry(FAILURE, 0)) for job in held])
    held = await worker.claim(tried)
    await _intend(worker, BEFORE, Policy.RECONCILE, [job for job in held if job.id in tried[2:]])
    await worker.leases.release_if_leased([Ended(job.id, job.attempt, Release("a test")) for job in held])
    await _end(worker, {job.id: job for job in await worker.claim(tried[1:])}, ids)
    return ids


async def _end(worker: World, held: dict[UUID, LeasedJob], ids: dict[State, UUID]) -> None:
    waiting = held[ids[State.RETRYING]]
    await worker.leases.retry_if_leased(
        [Ended(waiting.id, waiting.attempt, Retry(FAILURE, LATER_SECONDS, charged=False))]
    )
    await _intend(worker, MINE, Policy.REPEATABLE, [job for job in held.values() if job is not waiting])
    assert await worker.bury([held[ids[State.DEAD]]])
    assert await worker.finish([held[ids[State.DONE]]])
    assert await cancel_if_open(worker.db, ids[State.CANCELLED], None, "test")


async def lose(worker: World, queue: str, ids: Sequence[UUID], *, solo: bool = False) -> None:
    """An attempt of each at another worker, which dies of it."""
    lost = await hired(worker.db, worker.settings, worker.session, queue)
    await lost.beat()
    assert len((await lost.leases.claim(ids, solo=solo)).jobs) == len(ids)
    await Fleet(worker.db).leave(lost.worker_id, "killed by signal 9")
    [seen] = [one for one in await fleet.observed(worker.session) if one.id == lost.worker_id]
    suspect = Suspect(seen.id, seen.heartbeat_at, need_lock=False)
    assert len(await fleet.rescue(worker.session, worker.settings, [suspect], uuid4())) == len(ids)


async def _intend(worker: World, key: str, policy: Policy, held: Sequence[LeasedJob]) -> None:
    effects = Effects(worker.db, worker.settings)
    for job in held:
        await effects.intent(job.id, job.attempt, key, policy, DIGEST)
