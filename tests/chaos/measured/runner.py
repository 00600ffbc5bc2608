"""Carries measured runs out, in one scene, and looks at what they leave behind."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from tests.chaos import closing, report
from tests.chaos.closing import Weight
from tests.chaos.measured import (
    n05_ended_stays,
    n09_poison,
    n10_on_time,
    n14_redis_away,
    n18_connections_used_up,
    n18_sessions_cut,
    n19_snapshot_held,
    n20_late_commits,
    n21_recovery,
    n25_overload,
)
from tests.chaos.measured.figure import LONG, Measured, Sheet
from tests.chaos.measured.scene import END_SECONDS, Scene
from tests.chaos.records import Finding
from tests.chaos.report import Row
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis

MODULES = (
    n14_redis_away,
    n18_sessions_cut,
    n18_connections_used_up,
    n19_snapshot_held,
    n25_overload,
    n21_recovery,
    n09_poison,
    n10_on_time,
    n20_late_commits,
    n05_ended_stays,
)
RUNS: Sequence[Measured] = [module.RUN for module in MODULES if LONG or not module.RUN.only_long]

IDLE_SECONDS = 60.0 if LONG else 0.0  # before the last look


async def run_measured(
    runs: Sequence[Measured], seed: int, postgres: Postgres, redis: Redis, folder: Path
) -> AsyncIterator[Row]:
    """Each with the dice of the seed and its name. After a failure a new scene begins."""
    left = list(runs)
    while left:
        home = folder / left[0].name
        home.mkdir(parents=True)
        async with Scene(postgres, redis, home) as scene:
            ok, weights = True, dict[int, Weight]()
            while left and ok:
                run, began = left.pop(0), time.monotonic()
                try:
                    sheet = await _run(run, scene, random.Random(f"{run.name}:{seed}"))
                    if not left:
                        await asyncio.sleep(IDLE_SECONDS)
                    sheet.findings += await closing.left(scene, weights)
                    weights = weights or closing.weigh(scene)
                except Exception as error:
                    ok = False
                    yield report.of_failure(run.name, run.title, error, time.monotonic() - began)
                else:
                    yield report.of_sheet(run.name, run.title, sheet, time.monotonic() - began)


async def _run(run: Measured, scene: Scene, dice: random.Random) -> Sheet:
    first = len(scene.accepted)
    sheet = await run.measure(scene, dice)
    if not await scene.all_ended():
        sheet.findings.append(Finding("stuck", "", f"jobs are open {END_SECONDS:.0f} s after the run"))
    sheet.findings += [Finding("lost", job, "accepted, and has not ended") for job in await scene.lost(first)]
    await scene.settle()
    return sheet
