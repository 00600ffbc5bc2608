"""How long a single job takes at 200 a second, in an open loop: to be accepted, to be picked up, to be done."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Sequence

from app.store.database import Database
from bench.drain import TEXT, until_done
from bench.figures import Figure
from bench.line import Line
from bench.stack import audit, running

PER_SECOND = 200
LINES = 32
WARM_UP_SECONDS = 2.0

# From the row's own time, which is before its commit, to the handler's first line, and to the outcome; in seconds.
WAITED = """
SELECT (o.result->>'at')::float8 - extract(epoch FROM j.created_at)::float8 AS picked_up,
  extract(epoch FROM o.finished_at - j.created_at)::float8 AS done
FROM jobs j JOIN outcomes o ON o.job_id = j.id WHERE j.kind = 'bench.stamp' AND j.created_at >= to_timestamp($1)
"""


async def measure(seconds: float) -> list[Figure]:
    """Raises `RuntimeError` when a job is lost or the audit finds anything."""
    with running(os.environ, workers=1, handlers="bench.handlers") as stack:
        await _offer(stack.url, WARM_UP_SECONDS)
        began = time.time()
        submits = await _offer(stack.url, seconds)
        db = await Database.open(stack.settings, "bench", size_max=1)
        await until_done(db)
        async with db.session() as connection:
            rows = await connection.fetch(WAITED, began)
        await db.close()
        if audit(stack) or len(rows) != len(submits):
            raise RuntimeError(f"{len(submits)} jobs accepted, {len(rows)} done: no figure of this run counts")
    picked_up, done = [row["picked_up"] for row in rows], [row["done"] for row in rows]
    return [
        Figure("submit_p50_ms", f"POST at {PER_SECOND} jobs/s, p50", 1_000 * quantile(submits, 0.5), most=3),
        Figure("submit_p99_ms", "the same, p99", 1_000 * quantile(submits, 0.99)),
        Figure("pickup_p50_ms", "submit to handler, p50", 1_000 * quantile(picked_up, 0.5), most=5),
        Figure("pickup_p99_ms", "the same, p99", 1_000 * quantile(picked_up, 0.99), most=25),
        Figure("done_p50_ms", "submit to outcome, p50", 1_000 * quantile(done, 0.5)),
        Figure("done_p99_ms", "the same, p99", 1_000 * quantile(done, 0.99)),
    ]


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


async def _offer(url: str, seconds: float) -> list[float]:
    """Submits on time whatever becomes of what was submitted before; how long each waited for its 202."""
    free: asyncio.Queue[Line] = asyncio.Queue()
    lines = [await Line(url).__aenter__() for _ in range(LINES)]
    for line in lines:
        free.put_nowait(line)
    waited: list[float] = []

    async def one(n: int, due: float) -> None:
        line = await free.get()
        body = json.dumps({"kind": "bench.stamp", "input": {"n": n, "text": TEXT}}).encode()
        status, answer = await line.post("/v1/jobs", body)
        if status != 202:
            raise RuntimeError(f"a submit was answered with {status}: {answer[:200]!r}")
        waited.append(time.perf_counter() - due)
        free.put_nowait(line)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as calls:
        for n in range(int(seconds * PER_SECOND)):
            due = began + n / PER_SECOND
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            calls.create_task(one(n, due))  # what the caller is late itself counts: who waits does not care
    for line in lines:
        await line.__aexit__(None, None, None)
    return waited
