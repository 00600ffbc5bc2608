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
from bench.stack import refuse_losses, running

PER_SECOND = 200
LINES = 32
WARM_UP_SECONDS = 2.0

# From the row's own time, which is before its commit, to the handler's first line, and to the outcome; in seconds.
WAITED = """
SELECT (o.result->>'at')::float8 - extract(epoch FROM j.created_at)::float8 AS picked_up,
  extract(epoch FROM o.finished_at - j.created_at)::float8 AS done
FROM jobs j JOIN outcomes o ON o.job_id = j.id WHERE j.kind = $1 AND j.created_at >= to_timestamp($2)
"""


async def measure(seconds: float) -> list[Figure]:
    """Raises `RuntimeError` when a job is lost or the audit finds anything."""
    with running(os.environ, workers=1, handlers="bench.handlers") as stack:
        db = await Database.open(stack.settings, "bench", size_max=1)
        offered = len(await offer(stack.url, WARM_UP_SECONDS))
        figures: list[Figure] = []
        for kind, effects in (("bench.stamp", ""), ("bench.one", "one_effect_"), ("bench.three", "three_effects_")):
            began = time.time()
            submits = await offer(stack.url, seconds, kind)
            offered += len(submits)
            await until_done(db)
            async with db.session() as connection:
                rows = await connection.fetch(WAITED, kind, began)
            done = [row["done"] for row in rows]
            figures += [] if effects else _first([row["picked_up"] for row in rows], submits)
            figures += [
                Figure(
                    f"{effects}done_{name}_ms",
                    _words(f"submit to outcome, {name}", effects),
                    1_000 * quantile(done, at),
                )
                for name, at in (("p50", 0.5), ("p99", 0.99))
            ]
        await db.close()
        await refuse_losses(stack, offered)
    return figures


def _first(picked_up: Sequence[float], submits: Sequence[float]) -> list[Figure]:
    return [
        Figure("submit_p50_ms", f"POST at {PER_SECOND} jobs/s, p50", 1_000 * quantile(submits, 0.5), most=3),
        Figure("submit_p99_ms", "the same, p99", 1_000 * quantile(submits, 0.99)),
        Figure("pickup_p50_ms", "submit to handler, p50", 1_000 * quantile(picked_up, 0.5), most=5),
        Figure("pickup_p99_ms", "the same, p99", 1_000 * quantile(picked_up, 0.99), most=25),
    ]


def _words(what: str, effects: str) -> str:
    return f"{what}, {effects.rstrip('_').replace('_', ' ')}" if effects else what


def quantile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


async def offer(url: str, seconds: float, kind: str = "bench.stamp") -> list[float]:
    """Submits on time whatever becomes of what was submitted before; how long each waited for its 202."""
    free: asyncio.Queue[Line] = asyncio.Queue()
    lines = [await Line(url).__aenter__() for _ in range(LINES)]
    for line in lines:
        free.put_nowait(line)
    waited: list[float] = []

    async def one(n: int, due: float) -> None:
        line = await free.get()
        body = json.dumps({"kind": kind, "input": {"n": n, "text": TEXT}}).encode()
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
