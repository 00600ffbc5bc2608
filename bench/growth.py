"""Whether a job costs more with a history behind it, a backlog before it, or a snapshot that is held open."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

from bench.drain import submit
from bench.end_to_end import SLOTS
from bench.figures import Figure
from bench.load_history import Sizes, load
from bench.meters import count_statements
from bench.stack import BenchStack, audit, prepared
from bench.windows import Window, until_working, window

FEW = 10_000
WINDOW_SECONDS = 3.0
FASTEST_PER_SECOND = 18_000
SETTLE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Scale:
    """How many jobs lie behind or wait, and for how many seconds a snapshot is held."""

    many: int
    held_seconds: float


async def measure(scale: Scale) -> list[Figure]:
    """The cost of a job is the processor time that all processes and servers take together."""
    for_a_window = FEW + int((SETTLE_SECONDS + WINDOW_SECONDS) * FASTEST_PER_SECOND)
    few = await _at(finished=FEW, waiting=for_a_window)
    finished = await _at(finished=scale.many, waiting=for_a_window)
    waiting = await _at(finished=FEW, waiting=scale.many + for_a_window)
    return [
        Figure(
            "finished_1m_ratio",
            f"a job's cost with {scale.many:,} ended, of that with {FEW:,}",
            _milliseconds(finished) / _milliseconds(few),
            most=1.2,
        ),
        Figure(
            "waiting_1m_ratio",
            f"a job's cost with {scale.many:,} waiting, of that with {FEW:,}",
            _milliseconds(waiting) / _milliseconds(few),
            most=1.2,
        ),
        Figure(
            "held_xmin_ratio",
            f"throughput, a snapshot {scale.held_seconds:.0f} s old, of that without",
            await _held(scale.held_seconds),
            least=0.9,
        ),
    ]


async def _at(*, finished: int, waiting: int) -> Window:
    async with _filled(finished=finished, waiting=waiting) as stack:
        await until_working(stack)
        await asyncio.sleep(SETTLE_SECONDS)
        return await window(stack, WINDOW_SECONDS)


async def _held(seconds: float) -> float:
    """A window before the snapshot is taken, and the last while it is held, as long as a machine's moods."""
    length = max(WINDOW_SECONDS, seconds / 6)
    async with _filled(finished=FEW, waiting=FEW + int((seconds + length) * FASTEST_PER_SECOND)) as stack:
        await until_working(stack)
        await asyncio.sleep(SETTLE_SECONDS)
        calm = await window(stack, length)
        connection = await asyncpg.connect(stack.settings.database_url.get_secret_value())
        async with connection.transaction(isolation="repeatable_read"):
            await connection.fetchval("SELECT count(*) FROM leases")
            await asyncio.sleep(seconds - length)
            held = await window(stack, length)
        await connection.close()
    return held.per_second / calm.per_second


@asynccontextmanager
async def _filled(*, finished: int, waiting: int) -> AsyncIterator[BenchStack]:
    async def fill(stack: BenchStack) -> None:
        await count_statements(stack)
        await load(stack.settings, Sizes(outcomes=finished, dead=0, waiting=0), lambda _: None)
        await submit(stack.url, waiting)

    async with prepared({**os.environ, **SLOTS}, fill, workers=1, handlers="bench.handlers") as stack:
        yield stack
        if audit(stack):
            raise RuntimeError("the audit found something: no figure of this run counts")


def _milliseconds(of: Window) -> float:
    return sum(of.cost.cpu_ms.values())
