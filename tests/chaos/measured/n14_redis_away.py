"""N14: without Redis the work goes on straight from PostgreSQL, at four fifths of the speed at least."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.chaos.comeback import bring_back
from tests.chaos.measured.figure import LONG, Measured, Sheet
from tests.chaos.measured.handlers import NOTHING, PLAIN
from tests.chaos.measured.load import saturated
from tests.chaos.measured.scene import Scene
from tests.chaos.measured.windows import alternate

TURNS, SECONDS = (2, 30.0) if LONG else (1, 4.0)
WAITING = 3_000
LEAST_PERCENT = 80


async def measure(scene: Scene, dice: random.Random) -> Sheet:
    """Kills Redis for a window and brings it back empty, some times."""

    @asynccontextmanager
    async def redis_away() -> AsyncIterator[None]:
        scene.redis.process.kill()
        scene.redis.process.wait()
        yield
        await bring_back(scene.redis)

    before = len(scene.accepted)
    async with saturated(scene, NOTHING, PLAIN, waiting=WAITING):
        windows = await alternate(scene, redis_away, turns=TURNS, seconds=SECONDS)
    figure = windows.figure("throughput without Redis", LEAST_PERCENT)
    return Sheet(TURNS, len(scene.accepted) - before, [figure])


RUN = Measured("N14t", "throughput without Redis", measure)
