"""`make chaos`: every run, one after the other, on servers of its own. `SEED=n` replays the plans of seed n.

`python -m tests.chaos [N1 N6 ...]` carries out these runs only. Logs are kept when anything was found, which is exit 1,
or with `KEEP=1`.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.chaos import report
from tests.chaos.plan import plan
from tests.chaos.run import run
from tests.chaos.runs import SHAPES
from tests.chaos.world import make_template
from workers.dev.postgres import Postgres
from workers.dev.redis import Redis


def main(names: Sequence[str]) -> int:
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1_000_000))
    shapes = [shape for shape in SHAPES if not names or shape.name in names]
    folder = Path(tempfile.mkdtemp(prefix="outlast-chaos-"))
    print(f"seed {seed}: `SEED={seed} make chaos` does the same again; logs in {folder}", flush=True)
    print(report.header(), flush=True)
    began, bad = time.monotonic(), 0
    with Postgres(folder) as postgres, Redis(folder, durable=False) as redis:
        asyncio.run(make_template(postgres))
        for shape in shapes:
            result = asyncio.run(run(plan(shape, seed), postgres, redis, folder / shape.name))
            print(report.row(shape, result.history, result.findings, result.took_seconds), flush=True)
            print("".join(f"{line}\n" for line in report.details(result.findings)), end="", flush=True)
            bad += bool(result.findings)
    print(f"{len(shapes) - bad} of {len(shapes)} runs without a finding, {time.monotonic() - began:.0f} s", flush=True)
    if not bad and not os.environ.get("KEEP"):
        shutil.rmtree(folder)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
