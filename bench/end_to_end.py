"""Throughput and what a job costs: with Redis and without it, without effects and with three, in turn."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Mapping, Sequence

from app.store.database import Database
from bench.drain import drain
from bench.figures import Figure
from bench.meters import Cost, checkpoint, cost, count_statements, read
from bench.processes import memory_mb
from bench.stack import BenchStack, prepared, refuse_losses, running

WARM_UP = 2_000
KEYED = 5_000
SLOTS = {"OUTLAST_WORKER_CONCURRENCY": "256"}  # handlers that do nothing; PgQueuer takes batches of 500


async def measure(jobs: int, rounds: int) -> list[Figure]:
    """Alternating rounds of `jobs` no-op jobs. Raises `RuntimeError` when a job is lost or the audit finds anything."""
    with_redis = {**os.environ, **SLOTS}
    without_redis = {**with_redis, "OUTLAST_TRANSPORT": "pg"}
    async with (
        prepared(with_redis, count_statements, workers=1, handlers="bench.handlers") as stack,
        prepared(without_redis, count_statements, workers=1, handlers="bench.handlers") as direct,
    ):
        db, direct_db = [await Database.open(one.settings, "bench", size_max=2) for one in (stack, direct)]
        await drain(stack.url, db, WARM_UP)
        await drain(direct.url, direct_db, WARM_UP)
        rates: list[float] = []
        direct_rates: list[float] = []
        three: list[float] = []
        costs: list[Cost] = []
        keyed: list[Cost] = []
        for _ in range(rounds):
            rate, once = await _costing(stack, db, jobs)
            rates.append(rate)
            costs.append(once)
            three.append((await drain(stack.url, db, jobs // 2, "bench.three")).per_second)
            direct_rates.append((await drain(direct.url, direct_db, jobs)).per_second)
            keyed.append((await _costing(stack, db, KEYED, keyed=True))[1])
        memory = memory_mb(stack.pid)
        for one in (db, direct_db):
            await one.close()
        await refuse_losses(stack, WARM_UP + rounds * (jobs + jobs // 2 + KEYED))
        await refuse_losses(direct, WARM_UP + rounds * jobs)
    rate = statistics.median(rates)
    wal_keyed = _middle(keyed, lambda one: one.wal_bytes)
    return [
        Figure("end_to_end_per_s", "no-op jobs a second, submit to outcome", rate, least=8_000),
        Figure("redis_off_ratio", "of that without Redis", _in_turn(direct_rates, rates), least=0.8),
        Figure("three_effects_ratio", "of that with three effects a job", _in_turn(three, rates), least=0.3),
        *_of(costs),
        Figure("wal_bytes_per_keyed_job", "bytes of WAL a job with a key", wal_keyed, most=1_792),
        *_memory(memory),
    ]


async def alone(jobs: int) -> float:
    """Jobs a second of one round on servers of its own. Raises `RuntimeError` as `measure`."""
    with running({**os.environ, **SLOTS}, workers=1, handlers="bench.handlers") as stack:
        db = await Database.open(stack.settings, "bench", size_max=2)
        await drain(stack.url, db, WARM_UP)
        drained = await drain(stack.url, db, jobs)
        await db.close()
        await refuse_losses(stack, WARM_UP + jobs)
    return drained.per_second


async def _costing(stack: BenchStack, db: Database, jobs: int, *, keyed: bool = False) -> tuple[float, Cost]:
    """After a checkpoint, so that a short round pays for whole pages as a long one does."""
    await checkpoint(stack)
    before = await read(stack)
    drained = await drain(stack.url, db, jobs, keyed=keyed)
    return drained.per_second, cost(before, await read(stack), jobs)


def _in_turn(some: Sequence[float], others: Sequence[float]) -> float:
    """Rounds that came one after the other, as ratios: a machine that slows down slows both."""
    return statistics.median(one / other for one, other in zip(some, others, strict=True))


def _middle(costs: Sequence[Cost], of: Callable[[Cost], float]) -> float:
    return statistics.median(map(of, costs))


def _of(costs: Sequence[Cost]) -> list[Figure]:
    roles = sorted({role for one in costs for role in one.cpu_ms})
    by_role = {role: _middle(costs, lambda one, role=role: one.cpu_ms.get(role, 0.0)) for role in roles}
    whole = _middle(costs, lambda one: sum(one.cpu_ms.values()))
    return [
        Figure("sql_per_job", "SQL statements a job", _middle(costs, lambda one: one.statements), most=0.06),
        Figure("redis_per_job", "Redis round trips a job", _middle(costs, lambda one: one.redis_trips), most=0.06),
        Figure("wal_bytes_per_job", "bytes of WAL a job", _middle(costs, lambda one: one.wal_bytes), most=1_536),
        Figure("cpu_ms_per_job", "ms of processor time a job", whole, most=0.18),
        *(Figure(f"cpu_ms_per_job_{role}", f"of that by {role}", value) for role, value in by_role.items()),
    ]


def _memory(of: Mapping[str, float]) -> list[Figure]:
    ours = ("api", "relay", "worker")
    return [Figure(f"memory_mb_{role}", f"MB of the largest process: {role}", of[role]) for role in ours]
