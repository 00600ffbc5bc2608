"""What callers notice while millions of old jobs leave: `python -m bench.retention [--jobs N]`."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time

from app.settings import Settings
from app.store.database import Database
from bench.drain import until_done
from bench.figures import Figure, show
from bench.latency import offer, quantile
from bench.load_history import Sizes, load, talk
from bench.stack import audit, running
from workers.retirer import Retirer

DAYS_KEPT = 7
CALM_SECONDS = 15.0
CALM = {"OUTLAST_RETENTION_DAYS": "3650"}


async def measure(jobs: int) -> list[Figure]:
    """Raises `RuntimeError` when nothing left, or the audit finds anything."""
    with running({**os.environ, **CALM}, workers=1, handlers="bench.handlers") as stack:
        await load(stack.settings, Sizes(outcomes=jobs, dead=1_000, waiting=0), talk)
        settings = Settings(
            database_url=stack.settings.database_url, redis_url=stack.settings.redis_url, retention_days=DAYS_KEPT
        )
        db = await Database.open(settings, "bench", size_max=2)
        calm = await offer(stack.url, CALM_SECONDS)
        before = await _ended(db)
        began = time.perf_counter()
        retiring = asyncio.create_task(Retirer(settings, db).run_once())
        busy: list[float] = []
        while not retiring.done():
            busy += await offer(stack.url, 1.0)
        seconds = time.perf_counter() - began
        retired = await retiring
        gone = before + len(busy) - await _ended(db)
        await db.close()
        if audit(stack) or not retired.weeks or retired.waiting:
            raise RuntimeError(f"{retired}: no figure of this run counts")
    return [
        Figure("retired_jobs", "old jobs that left", gone),
        Figure("retire_seconds", "seconds that took", seconds),
        *(
            Figure(f"{when}_submit_{name}_ms", f"POST {what}, {name}", 1_000 * quantile(times, share))
            for when, what, times in (("calm", "before", calm), ("retiring", "meanwhile", busy))
            for name, share in (("p50", 0.5), ("p99", 0.99), ("worst", 1.0))
        ),
    ]


async def _ended(db: Database) -> int:
    await until_done(db)
    async with db.session() as connection:
        return await connection.fetchval("SELECT count(*) FROM outcomes")


def main() -> int:
    parser = argparse.ArgumentParser(description="Lets old jobs go beside 200 submits a second.")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    show(asyncio.run(measure(parser.parse_args().jobs)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
