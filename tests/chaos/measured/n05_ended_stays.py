"""N5: done and cancelled absorb: whatever is asked of an ended job, by anyone, changes nothing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID, uuid4

import redis

from app.domain.outcomes import Bury, Done, Failure, Release, Retry
from app.domain.states import Policy, Reason
from app.store import operations
from app.store.database import Database
from app.store.effects import Effects
from app.store.leases import Ended, Leases
from app.transport import keys
from tests.chaos.measured.figure import LONG, Measured, Sheet
from tests.chaos.measured.handlers import HOLD, NOTHING, PLAIN
from tests.chaos.measured.scene import Scene
from tests.chaos.records import Finding

CALLS = 10_000 if LONG else 1_000
JOBS = 200
TOGETHER = 8
ATTEMPT_MAX = 3
KINDS = (NOTHING, HOLD)

RECORD = """
SELECT md5(coalesce(string_agg(row, '' ORDER BY row), '')) FROM (
  SELECT o::text AS row FROM outcomes o WHERE job_id = ANY($1::uuid[])
  UNION ALL SELECT j::text FROM jobs j WHERE id = ANY($1::uuid[])
  UNION ALL SELECT e::text FROM effects e WHERE job_id = ANY($1::uuid[])
  UNION ALL SELECT a::text FROM attempts a WHERE job_id = ANY($1::uuid[])
  UNION ALL SELECT x::text FROM outbox x WHERE job_id = ANY($1::uuid[])
  UNION ALL SELECT l::text FROM leases l WHERE job_id = ANY($1::uuid[])
  UNION ALL SELECT d::text FROM dead_letters d WHERE job_id = ANY($1::uuid[])
) AS everything
"""


class Meddler:
    """Everything that may be asked of a job: by callers, operators, late workers and the broker."""

    def __init__(self, scene: Scene, db: Database, dice: random.Random) -> None:
        self._scene = scene
        self._db = db
        self._dice = dice
        self._leases = Leases(db, scene.settings, uuid4(), list(KINDS))
        self._effects = Effects(db, scene.settings)
        address = scene.redis.address
        self._broker = redis.Redis(port=address.port, password=address.password)

    async def meddle(self, job: UUID) -> None:
        """One call, at random."""
        ways: Sequence[Callable[[UUID], Awaitable[object]]] = (
            self._over_http,
            self._late_ending,
            self._late_effect,
            self._operator,
            self._claim,
            self._entry,
        )
        await self._dice.choice(ways)(job)

    async def _over_http(self, job: UUID) -> None:
        path = self._dice.choice(("jobs/{}/cancel", "jobs/{}/retry", "dead-letters/{}/replay")).format(job)
        await self._scene.http.post(f"/v1/{path}", json={"reason": "meddling"})

    async def _late_ending(self, job: UUID) -> None:
        attempt, failure = self._dice.randint(0, ATTEMPT_MAX), Failure("Meddling", "meddling", "0" * 16)
        ways: Sequence[Callable[[], Awaitable[object]]] = (
            lambda: self._leases.finish_if_leased([Ended(job, attempt, Done("7"))]),
            lambda: self._leases.retry_if_leased([Ended(job, attempt, Retry(failure, 0))]),
            lambda: self._leases.bury_if_leased([Ended(job, attempt, Bury(Reason.PERMANENT_ERROR, failure))]),
            lambda: self._leases.release_if_leased([Ended(job, attempt, Release("meddling"))]),
            lambda: self._leases.progress_if_leased(job, attempt, "{}"),
        )
        await self._dice.choice(ways)()

    async def _late_effect(self, job: UUID) -> None:
        attempt = self._dice.randint(0, ATTEMPT_MAX)
        ways: Sequence[Callable[[], Awaitable[object]]] = (
            lambda: self._effects.intent(job, attempt, "meddling", Policy.REPEATABLE, b"digest"),
            lambda: self._effects.record(job, attempt, "meddling", "7"),
            lambda: self._effects.clear(job, attempt, "meddling"),
        )
        await self._dice.choice(ways)()

    async def _operator(self, job: UUID) -> None:
        ways: Sequence[Callable[[], Awaitable[object]]] = (
            lambda: operations.cancel_if_open(self._db, job, "meddling", "test"),
            lambda: operations.retry_if_in_budget(self._db, job, "meddling", "test", 3),
            lambda: operations.replay_if_dead(self._db, str(uuid4()), [job], "meddling", "test"),
            lambda: operations.discard_if_dead(self._db, [job], "meddling", "test"),
            lambda: operations.resolve_performed(self._db, job, "meddling", "7", "meddling", "test"),
        )
        await self._dice.choice(ways)()

    async def _claim(self, job: UUID) -> None:
        await self._leases.claim([job], solo=self._dice.random() < 0.5)

    async def _entry(self, job: UUID) -> None:
        fields = {keys.JOB_FIELD: str(job), keys.ATTEMPT_FIELD: str(self._dice.randint(0, ATTEMPT_MAX))}
        self._broker.xadd(keys.stream("default"), fields)  # pyright: ignore[reportArgumentType]  # invariant in its dict


async def measure(scene: Scene, dice: random.Random) -> Sheet:
    """The rows of the jobs, in every table, are the same before and after."""
    done = await scene.submit(NOTHING, [PLAIN] * (JOBS // 2))
    cancelled = await scene.submit(HOLD, [{"seconds": 60}] * (JOBS // 2))
    for job in cancelled:
        await scene.http.post(f"/v1/jobs/{job}/cancel", json={})
    await scene.settle()
    jobs = [UUID(job) for job in (*done, *cancelled)]
    before = await scene.fetchval(RECORD, jobs)
    db = await Database.open(scene.settings, "test")
    meddler = Meddler(scene, db, dice)
    for _ in range(CALLS // TOGETHER):
        await asyncio.gather(*(meddler.meddle(dice.choice(jobs)) for _ in range(TOGETHER)))
    await db.close()
    await scene.settle()
    changed = await scene.fetchval(RECORD, jobs) != before
    return Sheet(CALLS, JOBS, findings=[Finding("ended", "", "a row of an ended job changed")] if changed else [])


RUN = Measured("N5", "calls on ended jobs", measure, alone=False)
