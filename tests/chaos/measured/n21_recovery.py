"""N21: a job whose worker is killed runs again within a second, one whose worker freezes after the lease."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Awaitable, Callable

from tests.chaos.measured.figure import LONG, Figure, Measured, Sheet, quantile
from tests.chaos.measured.handlers import HOLD
from tests.chaos.measured.scene import Scene
from tests.chaos.world import until

KILLS, FREEZES = (200, 5) if LONG else (15, 0)
HELD_SECONDS = 60.0
KILLED_SECONDS = 1.0
AFTER_LEASE_SECONDS = 2.0
START_SECONDS = 10.0

HOLDER = """
SELECT w.pid, l.attempt, extract(epoch FROM l.started_at)::float8 AS at
FROM leases l JOIN workers w ON w.id = l.worker_id WHERE l.job_id = $1::text::uuid
"""
AGAIN = """
SELECT extract(epoch FROM started_at)::float8 FROM leases WHERE job_id = $1::text::uuid AND attempt > 1
UNION ALL SELECT extract(epoch FROM started_at)::float8 FROM outcomes WHERE job_id = $1::text::uuid AND attempt > 1
"""


async def measure(scene: Scene, dice: random.Random) -> Sheet:
    """One job at a time, held by one of the workers, whose process is then taken away; default settings."""
    killed = [await _recovery(scene, _kill, KILLED_SECONDS + START_SECONDS) for _ in range(KILLS)]
    lease = scene.settings.lease_seconds
    frozen = [await _recovery(scene, _freeze, lease + START_SECONDS) for _ in range(FREEZES)]
    figures = [
        Figure(f"killed to running again, p50 of {KILLS}", quantile(killed, 0.5), KILLED_SECONDS),
        Figure(f"killed to running again, p99 of {KILLS}", quantile(killed, 0.99), KILLED_SECONDS),
    ]
    if frozen:
        what = f"frozen to running again, worst of {FREEZES}, lease {lease:g} s"
        figures.append(Figure(what, max(frozen), lease + AFTER_LEASE_SECONDS))
    return Sheet(KILLS + FREEZES, KILLS + FREEZES, figures)


async def _recovery(scene: Scene, take_away: Callable[[int], Callable[[], Awaitable[None]]], seconds: float) -> float:
    """Seconds from the signal to the second start; infinite when there is none in time."""
    await scene.settle()
    [job] = await scene.submit(HOLD, [{"seconds": HELD_SECONDS, "once": True}])

    async def held() -> bool:
        return bool(await scene.fetch(HOLDER, job))

    async def again() -> bool:
        return await scene.fetchval(AGAIN, job) is not None

    await until(held, START_SECONDS)
    [holder] = await scene.fetch(HOLDER, job)
    at = time.time()
    give_back = take_away(holder["pid"])
    try:
        return await scene.fetchval(AGAIN, job) - at if await until(again, seconds) else float("inf")
    finally:
        await give_back()


def _kill(pid: int) -> Callable[[], Awaitable[None]]:
    os.kill(pid, signal.SIGKILL)

    async def gone() -> None:
        return

    return gone


def _freeze(pid: int) -> Callable[[], Awaitable[None]]:
    os.kill(pid, signal.SIGSTOP)

    async def thaw() -> None:
        os.kill(pid, signal.SIGCONT)

    return thaw


RUN = Measured("N21", "workers killed, default settings", measure)
