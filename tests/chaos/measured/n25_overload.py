"""N25: half as much again as can be done is offered, and nine tenths at least of what can be done is done."""

from __future__ import annotations

import random

from tests.chaos.measured.figure import LONG, Measured, Sheet
from tests.chaos.measured.handlers import HOLD
from tests.chaos.measured.load import offered, saturated
from tests.chaos.measured.scene import Scene
from tests.chaos.measured.windows import Windows, rate

TURNS, SECONDS = (3, 20.0) if LONG else (1, 3.0)
HOLD_SECONDS = 0.5
WAITING = 1_000
OVERLOAD = 1.5
LEAST_PERCENT = 90


async def measure(scene: Scene, dice: random.Random) -> Sheet:
    """Every slot is held for half a second by each job, so that the slots are what there is too little of."""
    given = {"seconds": HOLD_SECONDS}
    before = len(scene.accepted)
    calm, hurt = list[float](), list[float]()
    for _ in range(TURNS):
        async with saturated(scene, HOLD, given, waiting=WAITING):
            calm.append(await rate(scene, SECONDS))
        async with offered(scene, HOLD, given, a_second=OVERLOAD * calm[-1]):
            hurt.append(await rate(scene, SECONDS))
    figure = Windows(calm, hurt).figure("goodput at 1.5 times of what can be done", LEAST_PERCENT)
    return Sheet(0, len(scene.accepted) - before, [figure])


RUN = Measured("N25", "half as much again offered", measure)
