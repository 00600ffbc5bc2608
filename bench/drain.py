"""Jobs from the first submit to the last outcome."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from uuid import uuid4

from app.store.database import Database
from bench.line import Line

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


async def drain(url: str, db: Database, jobs: int, kind: str = "bench.noop", *, keyed: bool = False) -> Drained:
    """Submits `jobs` in batches over HTTP and waits until none waits or runs; `keyed`: each with a key of its own."""
    began = time.perf_counter()
    await submit(url, jobs, kind, keyed=keyed)
    accepted = time.perf_counter()
    await until_done(db)
    return Drained(jobs, accepted - began, time.perf_counter() - began)


async def submit(url: str, jobs: int, kind: str = "bench.noop", queue: str = "default", *, keyed: bool = False) -> None:
    """Posts `jobs` jobs in batches, on some connections. Raises `RuntimeError` for one that is refused."""
    left = iter(range(0, jobs, BATCH))
    whole = _body(BATCH, kind, queue)

    async def send() -> None:
        async with Line(url) as line:
            for first in left:
                count = min(BATCH, jobs - first)
                body = whole if count == BATCH and not keyed else _body(count, kind, queue, keyed=keyed)
                status, answer = await line.post("/v1/jobs/batch", body)
                if status != 200 or answer.count(b'"status":202') != count:
                    raise RuntimeError(f"a batch was answered with {status}: {answer[:200]!r}")

    await asyncio.gather(*(send() for _ in range(SENDERS)))


def _body(jobs: int, kind: str, queue: str, *, keyed: bool = False) -> bytes:
    items = [{"kind": kind, "queue": queue, "input": {"n": n, "text": TEXT}} for n in range(jobs)]
    if keyed:
        items = [{**item, "idempotency_key": uuid4().hex} for item in items]
    return json.dumps({"jobs": items}).encode()


async def until_done(db: Database) -> None:
    """Waits until no job waits or runs."""
    open_jobs = "SELECT EXISTS (SELECT FROM outbox) OR EXISTS (SELECT FROM leases)"
    async with asyncio.timeout(ROUND_SECONDS_MAX), db.session() as connection:
        while await connection.fetchval(open_jobs):
            await asyncio.sleep(POLL_SECONDS)
