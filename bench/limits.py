"""What the servers and the interpreter can do at most, and what end to end is of each."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable

import asyncpg
import uvloop

from bench.figures import Figure
from bench.stack import BenchStack, redis_of, running

COMMITS = 2_000
CONNECTIONS = 64
ROWS, BATCH = 50_000, 1_000
ENTRIES, TOGETHER = 20_000, 500
TASKS = 50_000
PAYLOAD = "x" * 200

TABLE = "CREATE TABLE limits (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, payload text NOT NULL)"
ROW = "INSERT INTO limits (payload) VALUES ($1)"
MANY = "INSERT INTO limits (payload) SELECT unnest($1::text[])"


async def measure(per_second: float) -> list[Figure]:
    """`per_second` is what we do end to end."""
    with running(os.environ, workers=0, handlers="bench.handlers") as stack:
        commits = await _on_postgres(stack, lambda url: _commits(url, 1))
        of_many = await _on_postgres(stack, lambda url: _commits(url, CONNECTIONS))
        rows = await _on_postgres(stack, _rows)
        added, taken = await _stream(stack)
    tasks = await asyncio.to_thread(lambda: uvloop.run(_tasks()))
    found = (
        ("commits_on_1", "commits of a row a second, on one connection", commits),
        (f"commits_on_{CONNECTIONS}", f"the same on {CONNECTIONS}", of_many),
        ("rows_in_batches", f"rows a second in commits of {BATCH:,}", rows),
        ("stream_added", f"entries a second, XADD, {TOGETHER} at a time", added),
        ("stream_taken", f"the same, XREADGROUP, XACK and XDEL, {TOGETHER} at a time", taken),
        ("tasks", "asyncio tasks a second that do nothing", tasks),
    )
    return [
        *(Figure(f"limit_{key}_per_s", what, value) for key, what, value in found),
        *(
            Figure(f"share_of_{key}", f"end to end as a share: {what}", per_second / value)
            for key, what, value in found
        ),
    ]


async def _on_postgres(stack: BenchStack, work: Callable[[str], Awaitable[float]]) -> float:
    url = stack.settings.database_url.get_secret_value()
    connection = await asyncpg.connect(url)
    await connection.execute("DROP TABLE IF EXISTS limits")
    await connection.execute(TABLE)
    await connection.close()
    return await work(url)


async def _commits(url: str, connections: int) -> float:
    async def one(connection: asyncpg.Connection) -> None:
        for _ in range(COMMITS // connections):
            await connection.execute(ROW, PAYLOAD)

    opened = [await asyncpg.connect(url) for _ in range(connections)]
    began = time.perf_counter()
    await asyncio.gather(*map(one, opened))
    rate = COMMITS // connections * connections / (time.perf_counter() - began)
    for connection in opened:
        await connection.close()
    return rate


async def _rows(url: str) -> float:
    connection = await asyncpg.connect(url)
    began = time.perf_counter()
    for _ in range(ROWS // BATCH):
        await connection.execute(MANY, [PAYLOAD] * BATCH)
    rate = ROWS / (time.perf_counter() - began)
    await connection.close()
    return rate


async def _stream(stack: BenchStack) -> tuple[float, float]:
    redis = redis_of(stack)
    stream, group = "limits", "limits"
    await redis.xgroup_create(stream, group, "0", mkstream=True)
    began = time.perf_counter()
    for _ in range(ENTRIES // TOGETHER):
        pipeline = redis.pipeline(transaction=False)
        for _ in range(TOGETHER):
            pipeline.xadd(stream, {"job": "0" * 36, "attempt": "0"})
        await pipeline.execute()
    added = time.perf_counter()
    for _ in range(ENTRIES // TOGETHER):
        [[_, entries]] = await redis.xreadgroup(group, "one", {stream: ">"}, count=TOGETHER)
        ids = [entry[0] for entry in entries]
        await redis.pipeline(transaction=False).xack(stream, group, *ids).xdel(stream, *ids).execute()
    taken = time.perf_counter()
    await redis.delete(stream)
    await redis.aclose()
    return ENTRIES / (added - began), ENTRIES / (taken - added)


async def _tasks() -> float:
    async def nothing() -> None:
        return

    began = time.perf_counter()
    for _ in range(TASKS // TOGETHER):
        await asyncio.gather(*(asyncio.create_task(nothing()) for _ in range(TOGETHER)))
    return TASKS / (time.perf_counter() - began)
