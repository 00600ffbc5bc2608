"""What a stack with enough waiting jobs does in some seconds, and what each job costs it then."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import asyncpg

from bench.meters import Cost, cost, read
from bench.stack import BenchStack

POLL_SECONDS = 0.05
START_SECONDS_MAX = 60.0

ENDED = "SELECT count(*) FROM outcomes WHERE finished_at >= $1 AND finished_at < $2"
SOME_ENDED = "SELECT EXISTS (SELECT FROM outcomes WHERE finished_at >= $1)"
NOW = "SELECT clock_timestamp()"


@dataclass(frozen=True, slots=True)
class Window:
    """Jobs that ended a second, and the cost of one."""

    per_second: float
    cost: Cost


async def window(stack: BenchStack, seconds: float) -> Window:
    """Counted by when the outcomes were written; nothing is asked while it goes on."""
    connection = await asyncpg.connect(stack.settings.database_url.get_secret_value())
    try:
        before, began = await read(stack), await connection.fetchval(NOW)
        await asyncio.sleep(seconds)
        after, ended = await read(stack), await connection.fetchval(NOW)
        jobs = await connection.fetchval(ENDED, began, ended)
    finally:
        await connection.close()
    if not jobs:
        raise RuntimeError("no job ended in a window")
    return Window(jobs / (ended - began).total_seconds(), cost(before, after, jobs))


async def until_working(stack: BenchStack) -> None:
    """Returns once the first job since now has ended. Raises `TimeoutError`."""
    connection = await asyncpg.connect(stack.settings.database_url.get_secret_value())
    try:
        since = await connection.fetchval(NOW)
        async with asyncio.timeout(START_SECONDS_MAX):
            while not await connection.fetchval(SOME_ENDED, since):
                await asyncio.sleep(POLL_SECONDS)
    finally:
        await connection.close()
