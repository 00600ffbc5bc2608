"""Runs: start a world, load it, do what a plan says, wait, gather, judge; and once more for the next plan."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.chaos import closing
from tests.chaos.caller import Caller
from tests.chaos.checker import check, toothless
from tests.chaos.closing import Weight
from tests.chaos.evidence import gather
from tests.chaos.faults import Faults
from tests.chaos.observer import Observer
from tests.chaos.plan import Plan, Shape
from tests.chaos.plan import plan as make_plan
from tests.chaos.promises import broken
from tests.chaos.records import Finding, History, Phase, Verb
from tests.chaos.world import OPEN, READY_SECONDS, World, until
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis

END_SECONDS = 60.0
BITES_TRIED = 3


@dataclass(frozen=True)
class Result:
    history: History
    findings: list[Finding]
    took_seconds: float


async def run_all(
    plans: Sequence[Plan], postgres: Postgres, redis: Redis, folder: Path
) -> AsyncIterator[tuple[Plan, Result | Exception]]:
    """Carries the plans out; those on the same footing share a world. After a failure a new one begins."""
    left = list(plans)
    while left:
        async with _world(left[0], postgres, redis, folder) as world:
            footing, ok, weights = left[0].shape.footing, True, dict[int, Weight]()
            while left and ok and left[0].shape.footing == footing:
                plan = left.pop(0)
                last = not left or left[0].shape.footing != footing
                try:
                    result: Result | Exception = await bite(plan, world, folder, weights)
                    weights = closing.weigh(world)
                    result.findings.extend(await closing.end(world) if last else [])
                except Exception as error:
                    result, ok = error, False
                yield plan, result


async def bite(plan: Plan, world: World, folder: Path, before: Mapping[int, Weight]) -> Result:
    """A run that counts: one whose faults did not bite, and that found nothing else, is done again with other dice."""
    result = await run(plan, world, folder / plan.shape.name, before)
    for again in range(1, BITES_TRIED):
        if not result.findings or any(one.rule != "no bite" for one in result.findings):
            break
        other = make_plan(plan.shape, plan.seed + again)
        result = await run(other, world, folder / f"{plan.shape.name}-again-{again}", closing.weigh(world))
    return result


async def run(plan: Plan, world: World, folder: Path, before: Mapping[int, Weight]) -> Result:
    """Carries the plan out; logs go to `folder`. `before` is what the processes held after the run before this one."""
    began = time.monotonic()
    folder.mkdir(parents=True)
    await world.next_run(plan.shape, folder)
    work = {"log": str(world.handler_log), "sink": world.sink_url}
    caller = Caller(world.api_url, folder / "client.log", work)
    faults = Faults(world, folder / "faults.log", caller.cancel)
    observer = Observer(world.database_url)
    if not await until(caller.healthy, READY_SECONDS):
        raise TimeoutError(f"the API is not ready: {world.api.log_tail()}")
    looking = asyncio.create_task(observer.run())
    await asyncio.gather(caller.submit_all(plan.submits), faults.fire_all(plan.faults))

    async def nothing_open() -> bool:
        return not await world.fetch(OPEN)

    await until(nothing_open, END_SECONDS + plan.shape.slow_seconds[1])
    looking.cancel()
    with suppress(asyncio.CancelledError):
        await looking
    history = await gather(world, caller, faults, observer)
    findings = [*judge(plan.shape, history), *observer.findings, *faults.scene.findings]
    findings += await closing.look(world, before)
    await caller.close()
    return Result(history, findings, time.monotonic() - began)


@asynccontextmanager
async def _world(plan: Plan, postgres: Postgres, redis: Redis, folder: Path) -> AsyncIterator[World]:
    home = folder / f"{plan.shape.name}-world"
    home.mkdir(parents=True)
    async with World(plan.shape, postgres, redis, home) as world:
        yield world


def judge(shape: Shape, history: History) -> list[Finding]:
    """Everything that is wrong by the records: the checker's rules, and what this run is for beside them."""
    findings = [*check(history), *toothless(history, shape.wanted), *broken(history, shape.promises)]
    findings += uncharged(history) if not shape.charges else []
    findings += refused(history) if not shape.refuses else []
    findings += repeated(history) if shape.once else []
    return findings


def uncharged(history: History) -> list[Finding]:
    """In a run that kills no worker, no crash may be charged to any job."""
    return [Finding("charged", home.job_id, f"{home.crashes} crashes") for home in history.homes if home.crashes]


def refused(history: History) -> list[Finding]:
    """In a run that leaves PostgreSQL and the road to the API alone, every submit is accepted at once."""
    submits = [call for call in history.calls if call.verb is Verb.SUBMIT and call.phase is not Phase.BEFORE]
    return [Finding("refused", "", f"{call.key}: {call.status}") for call in submits if not call.accepted]


def repeated(history: History) -> list[Finding]:
    """In a run that takes no worker away, no job is started twice."""
    starts = Counter(line.job_id for line in history.handler if line.event == "start")
    return [Finding("started twice", job_id, f"{count} starts") for job_id, count in starts.items() if count > 1]
