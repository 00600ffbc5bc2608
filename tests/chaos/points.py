"""N2: at every failpoint processes are killed, stopped and failed, one after the other, with a job on its way there.

    python -m tests.chaos N2

Some worlds on each transport, all at the same time, which share the hits. Afterwards every hit is judged by what is
right at its point, and each world by the rules of all runs.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from app.failpoints import Action
from tests.chaos import closing, report
from tests.chaos.checker import check
from tests.chaos.evidence import gather
from tests.chaos.plan import Shape
from tests.chaos.points_cases import CASES, Case, Deed
from tests.chaos.points_ground import ground
from tests.chaos.points_hit import Hit, hit
from tests.chaos.points_judge import judge, matrix, together
from tests.chaos.records import Finding, History
from tests.chaos.report import Row
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis

NAME = "N2"
TITLE = "killed, stopped, failed at each point"

SHORT: Mapping[str, Mapping[Action, int]] = {
    "redis": {Action.KILL: 1, Action.STOP: 1},
    "pg": {Action.KILL: 1},
}
LONG: Mapping[str, Mapping[Action, int]] = {
    transport: {Action.KILL: 50, Action.RAISE: 5, Action.STOP: 5} for transport in ("redis", "pg")
}
WORLDS: Mapping[str, int] = {"redis": 2, "pg": 2 if os.environ.get("LONG") else 1}
SECONDS = 1_500.0 if os.environ.get("LONG") else 50.0  # about


@dataclass(frozen=True)
class Ran:
    """What one world leaves behind."""

    history: History
    hits: list[Hit]
    findings: list[Finding]


async def row(postgres: Postgres, redis: Redis, folder: Path) -> Row:
    """Hits every point as often as the size says; logs go to `folder`. Under the row stands the matrix."""
    began = time.monotonic()
    sizes = LONG if os.environ.get("LONG") else SHORT
    with ExitStack() as servers:
        more = range(1, max(WORLDS.values()))
        brokers = [redis, *(servers.enter_context(_another_redis(folder, nth)) for nth in more)]
        ran = await asyncio.gather(
            *(
                _in_one_world(transport, left, postgres, broker, folder, nth)
                for transport, left in [(transport, _hits(transport, size)) for transport, size in sizes.items()]
                for nth, broker in enumerate(brokers[: WORLDS[transport]])
            )
        )
    history = together([one.history for one in ran])
    findings = [finding for one in ran for finding in one.findings]
    shape = Shape(NAME, TITLE, jobs=0, seconds=0, faults={})
    found = report.of_history(shape, history, findings, time.monotonic() - began)
    return replace(found, lines=[*matrix([hit for one in ran for hit in one.hits], history), *found.lines])


async def _in_one_world(
    transport: str, left: deque[tuple[Case, Action, int]], postgres: Postgres, redis: Redis, folder: Path, nth: int
) -> Ran:
    """Takes hits from those that are `left`, as the other worlds do."""
    hits: list[Hit] = []
    async with ground(transport, postgres, redis, folder / f"{transport}-{nth}") as here:
        while left:
            if (one := await hit(here, *left.popleft())) is not None:
                hits.append(one)
        await here.quiet()
        here.faults.scene.to_replay = frozenset(one.job_id for one in hits if one.case.deed is Deed.REPLAY)
        history = await gather(here.world, here.caller, here.faults, here.observer)
        await here.end()
        findings = [*here.findings, *check(history), *here.observer.findings, *judge(hits, history)]
        findings += await closing.look(here.world, {})
        return Ran(history, hits, [*findings, *await closing.end(here.world)])


def _hits(transport: str, size: Mapping[Action, int]) -> deque[tuple[Case, Action, int]]:
    """All that are due on a transport; a point comes again when every other has had its turn."""
    return deque(
        (case, action, number)
        for action, count in size.items()
        for number in range(count)
        for case in CASES
        if case.can(action, transport)
    )


def _another_redis(folder: Path, nth: int) -> Redis:
    home = folder / f"broker-{nth}"
    home.mkdir(parents=True)
    return Redis(home, durable=False)
