"""N9: jobs that kill their process are dead after three starts, and what runs beside them is picked up as before."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Sequence

from tests.chaos.measured.figure import LONG, Figure, Measured, Sheet, quantile
from tests.chaos.measured.handlers import DIE, NOTHING, PLAIN
from tests.chaos.measured.load import offered
from tests.chaos.measured.scene import WORKERS, Scene
from tests.chaos.records import Finding

POISONS = 20 if LONG else 2
MORE_WORKERS = 2  # so that a job which takes two with it does not take the last
APART_SECONDS = 3.0
CALM_SECONDS = 10.0 if LONG else 4.0
NEIGHBOURS_A_SECOND = 50.0
TIMES = 2.0
LEAST_SECONDS = 0.5

PICKUP = """
SELECT extract(epoch FROM coalesce(a.started_at, o.started_at) - j.created_at)::float8 AS waited
FROM jobs j JOIN outcomes o ON o.job_id = j.id LEFT JOIN attempts a ON a.job_id = j.id AND a.attempt = 1
WHERE j.id = ANY($1::text[]::uuid[]) AND j.run_at IS NULL
"""
DEAD = """
SELECT job_id::text AS id, reason, attempt, crashes FROM dead_letters WHERE job_id = ANY($1::text[]::uuid[])
"""


async def measure(scene: Scene, dice: random.Random) -> Sheet:
    """Pickup of neighbours, from their submit to their first start: without poison, then beside it."""
    calm_from = len(scene.accepted)
    more = [scene.start_worker() for _ in range(MORE_WORKERS)]
    await scene.settle(WORKERS + MORE_WORKERS)
    async with offered(scene, NOTHING, PLAIN, a_second=NEIGHBOURS_A_SECOND):
        await asyncio.sleep(CALM_SECONDS)
    hurt_from = len(scene.accepted)
    poisons = list[str]()
    async with offered(scene, NOTHING, PLAIN, a_second=NEIGHBOURS_A_SECOND):
        for _ in range(POISONS):
            poisons += await scene.submit(DIE, [PLAIN])
            await asyncio.sleep(APART_SECONDS)
        await scene.settle(WORKERS + MORE_WORKERS)
    await scene.settle()
    for worker in more:
        worker.send(signal.SIGTERM)
    calm = await _pickup(scene, scene.accepted[calm_from:hurt_from])
    hurt = await _pickup(scene, [one for one in scene.accepted[hurt_from:] if one not in poisons])
    limit = max(LEAST_SECONDS, TIMES * quantile(calm, 0.99))
    return Sheet(
        faults=3 * POISONS,
        jobs=len(scene.accepted) - calm_from,
        figures=[Figure(f"neighbours' pickup p99 ({quantile(calm, 0.99):.3f} s before)", quantile(hurt, 0.99), limit)],
        findings=await _not_dead_after_three(scene, poisons),
    )


async def _pickup(scene: Scene, jobs: Sequence[str]) -> list[float]:
    return [row["waited"] for row in await scene.fetch(PICKUP, list(jobs))]


async def _not_dead_after_three(scene: Scene, poisons: Sequence[str]) -> list[Finding]:
    dead = {
        row["id"]: (row["reason"], row["attempt"], row["crashes"]) for row in await scene.fetch(DEAD, list(poisons))
    }
    starts = scene.settings.max_crashes
    return [
        Finding("poison", one, f"{dead.get(one)}")
        for one in poisons
        if dead.get(one) != ("crashes_exhausted", starts, starts)
    ]


RUN = Measured("N9", "jobs that kill their process", measure, alone=False)
