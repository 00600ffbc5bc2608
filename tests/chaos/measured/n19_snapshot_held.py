"""N19: a transaction that is held open for minutes keeps dead rows alive, and the throughput all the same."""

from __future__ import annotations

import random

import asyncpg

from tests.chaos.measured.figure import LONG, Measured, Sheet
from tests.chaos.measured.handlers import NOTHING, PLAIN
from tests.chaos.measured.load import saturated
from tests.chaos.measured.scene import Scene
from tests.chaos.measured.windows import Windows, rate

SECONDS = 20.0 if LONG else 4.0
HELD_WINDOWS = 9 if LONG else 2
WAITING = 3_000
LEAST_PERCENT = 90


async def measure(scene: Scene, dice: random.Random) -> Sheet:
    """A calm window before and one after; between them one snapshot is held. What counts is its last window."""
    before = len(scene.accepted)
    async with saturated(scene, NOTHING, PLAIN, waiting=WAITING):
        calm = [await rate(scene, SECONDS)]
        connection = await asyncpg.connect(scene.database_url)
        async with connection.transaction(isolation="repeatable_read"):
            await connection.fetchval("SELECT count(*) FROM outbox")
            held = [await rate(scene, SECONDS) for _ in range(HELD_WINDOWS)]
        await connection.close()
        calm.append(await rate(scene, SECONDS))
    figure = Windows(calm, held[-1:]).figure(
        f"throughput, a snapshot {HELD_WINDOWS * SECONDS:.0f} s old", LEAST_PERCENT
    )
    return Sheet(1, len(scene.accepted) - before, [figure])


RUN = Measured("N19", "a transaction held open", measure, only_long=True)
