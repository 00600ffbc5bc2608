"""One run: start a world, load it, do what the plan says, wait, gather, judge."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.chaos import closing
from tests.chaos.caller import Caller
from tests.chaos.checker import check, toothless
from tests.chaos.evidence import gather
from tests.chaos.faults import Faults
from tests.chaos.observer import Observer
from tests.chaos.plan import Plan
from tests.chaos.records import Finding, History, Phase, Verb
from tests.chaos.world import OPEN, READY_SECONDS, World, until
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis

END_SECONDS = 25.0


@dataclass(frozen=True)
class Result:
    history: History
    findings: list[Finding]
    took_seconds: float


async def run(plan: Plan, postgres: Postgres, redis: Redis, folder: Path) -> Result:
    """Carries the plan out in a world of its own; logs go to `folder`."""
    began = time.monotonic()
    folder.mkdir(parents=True)
    async with World(plan.shape, postgres, redis, folder) as world:
        work = {"log": str(world.handler_log), "sink": world.sink_url}
        caller = Caller(world.api_url, folder / "client.log", work)
        faults = Faults(world, folder / "faults.log")
        observer = Observer(world.database_url)
        if not await until(caller.healthy, READY_SECONDS):
            raise TimeoutError(f"the API is not ready: {world.api.log_tail()}")
        looking = asyncio.create_task(observer.run())
        await asyncio.gather(caller.submit_all(plan.submits), faults.fire_all(plan.faults))

        async def nothing_open() -> bool:
            return not await world.fetch(OPEN)

        await until(nothing_open, END_SECONDS)
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
        history = await gather(world, caller, faults, observer)
        findings = [*check(history), *observer.findings, *faults.scene.findings, *toothless(history, plan.shape.wanted)]
        findings += uncharged(history) if not plan.shape.charges else []
        findings += refused(history) if not plan.shape.refuses else []
        findings += await closing.look(world)
        await caller.close()
        return Result(history, findings, time.monotonic() - began)


def uncharged(history: History) -> list[Finding]:
    """In a run that kills no worker, no crash may be charged to any job."""
    return [Finding("charged", home.job_id, f"{home.crashes} crashes") for home in history.homes if home.crashes]


def refused(history: History) -> list[Finding]:
    """In a run that leaves PostgreSQL and the road to the API alone, every submit is accepted at once."""
    submits = [call for call in history.calls if call.verb is Verb.SUBMIT and call.phase is not Phase.BEFORE]
    return [Finding("refused", "", f"{call.key}: {call.status}") for call in submits if not call.accepted]
