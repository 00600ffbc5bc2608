"""Throughput with and without a fault, in turns of one run, so that what else the machine does hits both alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from tests.chaos.measured.figure import Figure
from tests.chaos.measured.scene import Scene

PERCENT = 100.0
SETTLE_SECONDS = 1.0

Fault = Callable[[], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True)
class Windows:
    """Jobs ended a second: `calm` without the fault, `hurt` with it."""

    calm: Sequence[float]
    hurt: Sequence[float]

    def figure(self, what: str, least_percent: float) -> Figure:
        """What was kept of the throughput, with the throughput itself in words."""
        mean = sum(self.calm) / len(self.calm)
        kept = PERCENT * (sum(self.hurt) / len(self.hurt)) / mean
        return Figure(f"{what}, of {mean:.0f} jobs/s", kept, least_percent, "%", at_least=True)


async def alternate(scene: Scene, fault: Fault, *, turns: int, seconds: float) -> Windows:
    """One calm window more than there are turns, each fault between two of them."""
    calm, hurt = [await rate(scene, seconds)], list[float]()
    for _ in range(turns):
        async with fault():
            hurt.append(await rate(scene, seconds))
        await asyncio.sleep(SETTLE_SECONDS)
        calm.append(await rate(scene, seconds))
    return Windows(calm, hurt)


async def rate(scene: Scene, seconds: float) -> float:
    """Jobs ended a second, from now on for so long."""
    began = await scene.now()
    await asyncio.sleep(seconds)
    ended = await scene.now()
    return await scene.ended_between(began, ended) / (ended - began).total_seconds()


@asynccontextmanager
async def nothing() -> AsyncIterator[None]:
    """No fault."""
    yield
