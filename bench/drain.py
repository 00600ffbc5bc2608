"""Jobs from the first submit to the last outcome."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import httpx

from app.store.database import Database

BATCH = 1_000
SENDERS = 4
TEXT = "x" * 150
POLL_SECONDS = 0.02
ROUND_SECONDS_MAX = 120


@dataclass(frozen=True, slots=True)
class Drained:
    """How long `jobs` jobs took to be accepted, and to be done, in seconds."""

    jobs: int
    accepted_seconds: float
    seconds: float

    @property
    def per_second(self) -> float:
        return self.jobs / self.seconds


async def drain(url: str, db: Database, jobs: int, kind: str = "bench.noop") -> Drained:
    """Submits `jobs` in batches over HTTP and waits until none waits or runs."""
    began = time.perf_counter()
    await submit(url, jobs, kind)
    accepted = time.perf_counter()
    await until_done(db)
    return Drained(jobs, accepted - began, time.perf_counter() - began)


async def submit(url: str, jobs: int, kind: str = "bench.noop", queue: str = "default") -> None:
    """Posts `jobs` jobs in batches, some requests at a time. Raises `httpx.HTTPError`."""
    room = asyncio.Semaphore(SENDERS)

    async def post(client: httpx.AsyncClient, first: int) -> None:
        numbers = range(first, min(first + BATCH, jobs))
        items = [{"kind": kind, "queue": queue, "input": {"n": n, "text": TEXT}} for n in numbers]
        async with room:
            answer = await client.post("/v1/jobs/batch", json={"jobs": items})
        answer.raise_for_status()

    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        await asyncio.gather(*(post(client, first) for first in range(0, jobs, BATCH)))


async def until_done(db: Database) -> None:
    """Waits until no job waits or runs."""
    open_jobs = "SELECT EXISTS (SELECT FROM outbox) OR EXISTS (SELECT FROM leases)"
    async with asyncio.timeout(ROUND_SECONDS_MAX), db.session() as connection:
        while await connection.fetchval(open_jobs):
            await asyncio.sleep(POLL_SECONDS)
