"""Runs one after the other, on servers of their own: `python -m tests.chaos.lane SEED FOLDER NAME...`.

Prints the row of each run that has ended, a line of JSON each.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from tests.chaos import points, report
from tests.chaos.measured.runner import RUNS, run_measured
from tests.chaos.plan import plan
from tests.chaos.report import Row
from tests.chaos.run import run_all
from tests.chaos.runs import SHAPES
from tests.chaos.world import make_template
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis


async def rows(names: Sequence[str], seed: int, folder: Path) -> AsyncIterator[Row]:
    """The row of each run, as it ends."""
    with Postgres(folder) as postgres, Redis(folder, durable=False) as redis:
        await make_template(postgres)
        measured = [one for one in RUNS if one.name in names]
        if measured:
            async for row in run_measured(measured, seed, postgres, redis, folder / "measured"):
                yield row
        if points.NAME in names:
            yield await points.row(postgres, redis, folder / points.NAME)
        plans = [plan(shape, seed) for shape in SHAPES if shape.name in names]
        plans.sort(key=lambda one: str(one.shape.footing))
        began = time.monotonic()
        async for one, result in run_all(plans, postgres, redis, folder):
            if isinstance(result, Exception):
                yield report.of_failure(one.shape.name, one.shape.title, result, time.monotonic() - began)
            else:
                yield report.of_history(one.shape, result.history, result.findings, result.took_seconds)
            began = time.monotonic()


async def main(seed: int, folder: Path, names: Sequence[str]) -> None:
    folder.mkdir(parents=True)
    async for row in rows(names, seed, folder):
        print(row.dump(), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
