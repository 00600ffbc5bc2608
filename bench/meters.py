"""What a stack has done so far, to be subtracted: statements, bytes of WAL, trips to Redis, processor time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import asyncpg

from bench.processes import cpu_seconds
from bench.stack import BenchStack, redis_of

STATEMENTS = """
SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements
WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
WAL = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"


# Loaded by the server at its start.
COUNTING = (
    "ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'",
    "CREATE EXTENSION pg_stat_statements",
)


@dataclass(frozen=True, slots=True)
class Reading:
    """`redis_trips` are reads of a client's socket, which is one for everything that was sent together."""

    statements: int
    wal_bytes: int
    redis_trips: int
    cpu_seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Cost:
    """What one job has cost: `cpu_ms` by role, in milliseconds."""

    statements: float
    wal_bytes: float
    redis_trips: float
    cpu_ms: Mapping[str, float]


async def count_statements(stack: BenchStack) -> None:
    """From its next start on PostgreSQL counts them."""
    connection = await asyncpg.connect(stack.settings.database_url.get_secret_value())
    for statement in COUNTING:
        await connection.execute(statement)
    await connection.close()


async def checkpoint(stack: BenchStack) -> None:
    """Writes everything out now, so that none begins by itself soon."""
    connection = await asyncpg.connect(stack.settings.database_url.get_secret_value())
    await connection.execute("CHECKPOINT")
    await connection.close()


async def read(stack: BenchStack) -> Reading:
    """What was done up to now by the whole stack, its servers included."""
    connection = await asyncpg.connect(stack.settings.database_url.get_secret_value())
    redis = redis_of(stack)
    try:
        stats = await redis.info("stats")
        return Reading(
            statements=await connection.fetchval(STATEMENTS),
            wal_bytes=await connection.fetchval(WAL),
            redis_trips=stats["total_reads_processed"],
            cpu_seconds=cpu_seconds(stack.pid),
        )
    finally:
        await redis.aclose()
        await connection.close()


def cost(before: Reading, after: Reading, jobs: int) -> Cost:
    """What each of `jobs` jobs has cost between two readings."""
    return Cost(
        statements=(after.statements - before.statements) / jobs,
        wal_bytes=(after.wal_bytes - before.wal_bytes) / jobs,
        redis_trips=(after.redis_trips - before.redis_trips) / jobs,
        cpu_ms={
            role: (seconds - before.cpu_seconds.get(role, 0.0)) * 1_000 / jobs
            for role, seconds in sorted(after.cpu_seconds.items())
        },
    )
