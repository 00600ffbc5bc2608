"""What faults work on and leave behind, and the list of all of them: `@fault("name")` above a function adds one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.chaos.records import Finding
from tests.chaos.world import World, until
from tests.processes import Process

HIT_SECONDS = 15.0
EXIT_SECONDS = 15.0


@dataclass
class Scene:
    """`findings` is what a fault itself found wrong, `to_replay` the dead letters that a replay command was given.

    `cancel` asks for a job's end as a client, which writes it down. `busy` are the pids that are not to be hit again
    now.
    """

    world: World
    cancel: Callable[[str], Awaitable[None]]
    findings: list[Finding] = field(default_factory=list[Finding])
    to_replay: frozenset[str] = frozenset()
    busy: set[int] = field(default_factory=set[int])

    async def must_leave(self, process: Process, seconds: float = EXIT_SECONDS) -> None:
        """Waits for the end of a process; no end in time, or a code other than 0, is a finding."""

        async def ended() -> bool:
            return not process.alive()

        if not await until(ended, seconds) or process.popen.returncode != 0:
            self.findings.append(Finding("exit", "", f"{process.name} {process.pid}: {process.popen.returncode}"))


Act = Callable[[Scene, float], Awaitable[str | None]]
ACTS: dict[str, Act] = {}


def fault(name: str) -> Callable[[Act], Act]:
    """Adds a function to the faults by this name.

    It is given the scene and a draw in [0, 1) that decides what the plan leaves open, and returns what it hit, or
    nothing when there was nothing to hit.
    """

    def add(act: Act) -> Act:
        ACTS[name] = act
        return act

    return add


async def within_reach(trap: Awaitable[str]) -> str | None:
    """What a trap caught, or nothing when nobody stepped into it for long."""
    try:
        return await asyncio.wait_for(trap, HIT_SECONDS)
    except TimeoutError:
        return None
