"""A steady load below what can be done, and whether anything grows: `python -m bench.soak [--minutes N]`.

Exit 1 when memory grows, dead rows do, anything is left in the stream, or the audit finds something.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg
from rich.progress import Progress

from app.store.database import Database
from app.transport import keys
from bench.drain import drain, submit, until_done
from bench.figures import Figure, show
from bench.processes import memory_mb
from bench.stack import BenchStack, redis_of, refuse_losses, running

WARM_UP = 20_000
LOAD_SHARE = 0.7
TICK_SECONDS = 1.0
SAMPLE_SECONDS = 10.0
GROWTH_MAX = 1.1
DEAD_ROWS_GROWTH_MAX = 1.5  # they pile up between two rounds of autovacuum, a minute apart by default

DEAD_ROWS = "SELECT coalesce(sum(n_dead_tup), 0)::bigint FROM pg_stat_user_tables WHERE relname IN ('outbox', 'leases')"
PAGES = "SELECT (pg_total_relation_size('outbox') + pg_total_relation_size('leases')) / 1048576.0::float8"


@dataclass(frozen=True, slots=True)
class Sample:
    """At one moment: MB of the largest process of each role, dead rows and MB of the small tables, waiting jobs."""

    memory: dict[str, float]
    dead_rows: int
    small_tables_mb: float
    waiting: int


async def measure(minutes: float) -> list[Figure]:
    """Raises `RuntimeError` when a job is lost."""
    with running(os.environ, workers=1, handlers="bench.handlers") as stack:
        db = await Database.open(stack.settings, "bench", size_max=2)
        best = (await drain(stack.url, db, WARM_UP)).per_second
        best = (await drain(stack.url, db, WARM_UP)).per_second
        offered, samples = await _load(stack, db, best * LOAD_SHARE, minutes * 60)
        await until_done(db)
        await db.close()
        left = await _left(stack)
        await refuse_losses(stack, 2 * WARM_UP + offered)
    return [
        Figure("soak_jobs", f"jobs in {minutes:g} minutes, at {LOAD_SHARE:.0%} of {best:,.0f}/s", offered),
        *growth_of(samples),
        Figure("soak_dead_rows_worst", "dead rows of the small tables, at worst", _worst(samples)),
        Figure(
            "soak_dead_rows_growth", "at worst, the last half of the first", _grown(samples), most=DEAD_ROWS_GROWTH_MAX
        ),
        Figure("soak_small_tables_mb", "MB of the small tables, at last", samples[-1].small_tables_mb),
        Figure("soak_waiting_worst", "jobs that waited, at worst", max(one.waiting for one in samples)),
        Figure("soak_left_in_stream", "entries and pending ones left in the stream", left, most=0),
    ]


async def _load(stack: BenchStack, db: Database, per_second: float, seconds: float) -> tuple[int, list[Sample]]:
    """A batch a tick, on time; how many jobs, and what was seen meanwhile."""
    began = time.monotonic()
    samples: list[Sample] = []
    offered = 0
    with Progress(disable=not sys.stderr.isatty(), transient=True) as progress:
        bar = progress.add_task("soak", total=seconds)
        while (passed := time.monotonic() - began) < seconds:
            progress.update(bar, completed=passed)
            due = int((passed + TICK_SECONDS) * per_second) - offered
            await submit(stack.url, due)
            offered += due
            if passed >= len(samples) * SAMPLE_SECONDS:
                samples.append(await _sample(stack, db))
            await asyncio.sleep(max(0.0, began + passed + TICK_SECONDS - time.monotonic()))
    return offered, samples


async def _sample(stack: BenchStack, db: Database) -> Sample:
    async with db.session() as connection:
        dead, pages = await connection.fetchval(DEAD_ROWS), await connection.fetchval(PAGES)
        waiting = await connection.fetchval("SELECT count(*) FROM outbox")
    return Sample(dict(memory_mb(stack.pid)), dead, pages, waiting)


def growth_of(samples: Sequence[Sample]) -> list[Figure]:
    """The last third against the second: the first is when caches and pools fill."""
    third = max(1, len(samples) // 3)
    middle, last = samples[third : 2 * third] or samples, samples[-third:]
    return [
        Figure(
            f"soak_{role}_growth",
            f"memory of the largest process: {role}, the last third of the middle one",
            statistics.median(one.memory[role] for one in last) / statistics.median(one.memory[role] for one in middle),
            most=GROWTH_MAX,
        )
        for role in ("api", "relay", "worker")
    ]


def _worst(samples: Sequence[Sample]) -> int:
    return max(one.dead_rows for one in samples)


def _grown(samples: Sequence[Sample]) -> float:
    half = max(1, len(samples) // 2)
    return _worst(samples[-half:]) / max(1, _worst(samples[:half]))


async def _left(stack: BenchStack) -> int:
    redis = redis_of(stack)
    stream = keys.stream("default")
    try:
        left = 1
        for _ in range(50):
            left = await redis.xlen(stream) + (await redis.xpending(stream, keys.GROUP))["pending"]
            if not left:
                break
            await asyncio.sleep(0.1)
        return left
    finally:
        await redis.aclose()


def main() -> int:
    parser = argparse.ArgumentParser(description="A steady load, and whether anything grows.")
    parser.add_argument("--minutes", type=float, default=30.0)
    try:
        figures = asyncio.run(measure(parser.parse_args().minutes))
    except (RuntimeError, asyncpg.PostgresError) as error:
        print(error, file=sys.stderr)
        return 1
    show(figures)
    return 0 if all(one.holds for one in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
