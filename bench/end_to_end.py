"""Throughput and what a job costs: with Redis and without it, round about, and jobs with three effects."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence

from app.store.database import Database
from bench.drain import drain, submit
from bench.figures import Figure
from bench.meters import Cost, cost, count_statements, read
from bench.stack import BenchStack, audit, prepared

WARM_UP = 2_000
UNATTENDED = "bench-unattended"


async def measure(jobs: int, rounds: int) -> list[Figure]:
    """Alternating rounds of `jobs` no-op jobs. Raises `RuntimeError` when the audit finds anything."""
    without_redis = {**os.environ, "OUTLAST_TRANSPORT": "pg"}
    async with (
        prepared(os.environ, count_statements, workers=1, handlers="bench.handlers") as stack,
        prepared(without_redis, count_statements, workers=1, handlers="bench.handlers") as direct,
    ):
        db, direct_db = [await Database.open(one.settings, "bench", size_max=2) for one in (stack, direct)]
        await drain(stack.url, db, WARM_UP)
        await drain(direct.url, direct_db, WARM_UP)
        rates: list[float] = []
        direct_rates: list[float] = []
        costs: list[Cost] = []
        for _ in range(rounds):
            before = await read(stack)
            rates.append((await drain(stack.url, db, jobs)).per_second)
            costs.append(cost(before, await read(stack), jobs))
            direct_rates.append((await drain(direct.url, direct_db, jobs)).per_second)
        three = [(await drain(stack.url, db, jobs // 3, "bench.three")).per_second for _ in range(rounds)]
        accepted = [await _accepted(stack, jobs) for _ in range(rounds)]
        for one in (db, direct_db):
            await one.close()
        if audit(stack) or audit(direct):
            raise RuntimeError("the audit found something: no figure of this run counts")
    rate = statistics.median(rates)
    return [
        Figure("end_to_end_per_s", "no-op jobs a second, submit to outcome", rate, least=8_000),
        Figure("redis_off_ratio", "of that without Redis", statistics.median(direct_rates) / rate, least=0.8),
        Figure("batch_jobs_per_s", "jobs a second accepted in batches", statistics.median(accepted), least=15_000),
        Figure("three_effects_ratio", "of that with three effects a job", statistics.median(three) / rate, least=0.3),
        *_of(costs),
    ]


def _of(costs: Sequence[Cost]) -> list[Figure]:
    def middle(of: Callable[[Cost], float]) -> float:
        return statistics.median(map(of, costs))

    roles = sorted({role for one in costs for role in one.cpu_ms})
    by_role = {role: statistics.median(one.cpu_ms.get(role, 0.0) for one in costs) for role in roles}
    return [
        Figure("sql_per_job", "SQL statements a job", middle(lambda one: one.statements), most=0.06),
        Figure("redis_per_job", "Redis round trips a job", middle(lambda one: one.redis_trips), most=0.06),
        Figure("wal_bytes_per_job", "bytes of WAL a job", middle(lambda one: one.wal_bytes), most=1_536),
        Figure("cpu_ms_per_job", "ms of processor time a job", sum(by_role.values()), most=0.18),
        *(Figure(f"cpu_ms_per_job_{role}", f"of that by {role}", value) for role, value in by_role.items()),
    ]


async def _accepted(stack: BenchStack, jobs: int) -> float:
    began = time.perf_counter()
    await submit(stack.url, jobs, queue=UNATTENDED)
    return jobs / (time.perf_counter() - began)
