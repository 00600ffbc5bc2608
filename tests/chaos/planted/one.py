"""The run of one planted fault, on servers of its own: `python -m tests.chaos.planted.one NUMBER SEED FOLDER`.

Started in a copy of the tree, it runs the product of that copy. Prints each finding, a line of JSON each.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from tests.chaos.plan import plan
from tests.chaos.planted.flaws import FLAWS
from tests.chaos.records import Finding
from tests.chaos.run import run_all
from tests.chaos.world import make_template
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis


async def findings(number: int, seed: int, folder: Path) -> AsyncIterator[Finding]:
    """What the run finds; a run that could not be carried out is a finding as well, of no rule."""
    with Postgres(folder) as postgres, Redis(folder, durable=False) as redis:
        await make_template(postgres)
        async for _, result in run_all([plan(FLAWS[number].shape, seed)], postgres, redis, folder):
            if isinstance(result, Exception):
                yield Finding("no run", "", f"{type(result).__name__}: {result}")
            else:
                for finding in result.findings:
                    yield finding


async def main(number: int, seed: int, folder: Path) -> None:
    folder.mkdir(parents=True)
    async for finding in findings(number, seed, folder):
        print(json.dumps([finding.rule, finding.job_id, finding.detail[:300]]), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
