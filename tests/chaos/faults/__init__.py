"""What is done to a world: a file for each thing that is hurt, and what fires them as the plan says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from tests.chaos.faults import (
    callers,
    clocks,
    links,
    operator,
    postgres,
    processes,
    redis,
    redis_failover,
    redis_lies,
    redis_states,
)
from tests.chaos.faults.scene import ACTS, Scene
from tests.chaos.plan import Fault
from tests.chaos.records import Fired
from tests.chaos.world import World

__all__ = [
    "Faults",
    "callers",
    "clocks",
    "links",
    "operator",
    "postgres",
    "processes",
    "redis",
    "redis_failover",
    "redis_lies",
    "redis_states",
]


class Faults:
    """Fires the faults of a plan. `fired` is the fault log; it also goes to a file."""

    def __init__(self, world: World, log: Path, cancel: Callable[[str], Awaitable[None]]) -> None:
        self.fired: list[Fired] = []
        self.scene = Scene(world, cancel)
        self._file = log.open("a", buffering=1)
        self._room = asyncio.Semaphore(world.shape.at_once)

    async def fire_all(self, faults: Sequence[Fault]) -> None:
        """Each at its time, or as soon as less than `at_once` others last; then the operator ends what was begun."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for fault in faults:
                await asyncio.sleep(began + fault.at - time.monotonic())
                await self._room.acquire()
                tasks.create_task(self._fire(fault))
        await operator.finish_replay(self.scene)
        self._file.close()

    async def _fire(self, fault: Fault) -> None:
        try:
            at = time.time()
            hit = await ACTS[fault.name](self.scene, fault.draw)
            if hit is not None:
                self._note(Fired(at, time.time(), fault.name, hit))
        finally:
            self._room.release()

    def _note(self, fired: Fired) -> None:
        self.fired.append(fired)
        self._file.write(f"{fired.at:.6f} {fired.healed_at:.6f} {fired.fault}: {fired.hit}\n")
