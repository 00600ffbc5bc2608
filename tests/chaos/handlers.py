"""The handlers of the load. What they did stands in an append-only file that the product never reads."""

from __future__ import annotations

import asyncio
import os
from functools import cache

import httpx
from pydantic import BaseModel

from outlast import Context, Permanent, Transient, task
from tests.chaos.clocks import true_time
from tests.chaos.records import Part

KIND = "chaos.work"
FAILURES = 2
SINK_SECONDS = 5.0


class Work(BaseModel):
    """`log` is the handler log, `sink` the address of what counts effects."""

    part: Part
    log: str
    sink: str
    seconds: float = 0


class Answer(BaseModel):
    attempt: int


@cache
def _append_to(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def note(log: str, event: str, job_id: object, attempt: int, *words: str) -> None:
    """Appends a line in one write, so that no two lines mix and a killed process leaves whole ones."""
    at, shift = true_time()
    line = (f"{at:.6f}", f"{shift:g}", event, str(job_id), str(attempt), *words, "\n")
    os.write(_append_to(log), " ".join(line).encode())


@cache
def _sink(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=url, timeout=SINK_SECONDS, verify=False)


@task(KIND, timeout_seconds=60, max_retries=FAILURES)
async def work(ctx: Context, work: Work) -> Answer:
    note(work.log, "start", ctx.job_id, ctx.attempt)

    async def file(job: str, *, idempotency_key: str) -> None:
        note(work.log, "perform", job, ctx.attempt, idempotency_key)
        answer = await _sink(work.sink).post(
            "/filings", json={"ticket": job}, headers={"Idempotency-Key": idempotency_key}
        )
        answer.raise_for_status()

    match work.part:
        case Part.PERMANENT:
            raise Permanent("asked to fail for good")
        case Part.FLAKY if ctx.attempt <= FAILURES:
            raise Transient(f"asked to fail, time {ctx.attempt}")
        case Part.EFFECT:
            await ctx.effect("file", file, str(ctx.job_id))
        case _:
            pass
    await asyncio.sleep(work.seconds)
    return Answer(attempt=ctx.attempt)
