"""N18: ten sessions a second are terminated, and four fifths of the throughput at least stay."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.chaos.measured.figure import LONG, Measured, Sheet
from tests.chaos.measured.handlers import NOTHING, PLAIN
from tests.chaos.measured.load import saturated
from tests.chaos.measured.scene import Scene
from tests.chaos.measured.windows import alternate

TURNS, SECONDS = (3, 20.0) if LONG else (2, 3.0)
EVERY_SECONDS = 0.1
WAITING = 3_000
LEAST_PERCENT = 80

TERMINATE_ONE = """
SELECT pg_terminate_backend(pid) FROM (
  SELECT pid FROM pg_stat_activity
  WHERE application_name LIKE 'outlast %' AND datname = current_database() ORDER BY pid OFFSET $1 LIMIT 1
) AS one
"""
SESSIONS = """
SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'outlast %' AND datname = current_database()
"""


async def measure(scene: Scene, dice: random.Random) -> Sheet:
    """Terminates one session of any of the processes every 100 ms, for a window, some times."""
    terminated = 0

    async def terminate() -> None:
        nonlocal terminated
        while True:
            at = dice.randrange(max(1, await scene.fetchval(SESSIONS)))
            terminated += await scene.fetchval(TERMINATE_ONE, at) is True
            await asyncio.sleep(EVERY_SECONDS)

    @asynccontextmanager
    async def sessions_cut() -> AsyncIterator[None]:
        task = asyncio.create_task(terminate())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    before = len(scene.accepted)
    async with saturated(scene, NOTHING, PLAIN, waiting=WAITING):
        windows = await alternate(scene, sessions_cut, turns=TURNS, seconds=SECONDS)
    figure = windows.figure("throughput with 10 sessions/s terminated", LEAST_PERCENT)
    return Sheet(terminated, len(scene.accepted) - before, [figure])


RUN = Measured("N18t", "throughput, sessions terminated", measure)
