"""Jobs a second from the first submit to the last outcome, with the audit run on the result.

`python -m bench.end_to_end [--jobs N] [--rounds N]` starts a stack of its own, submits no-op jobs in batches of 1,000
over HTTP, waits until every one of them is done, and prints one line a round. Exit 1 when the audit finds anything.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time

import httpx

from app.store.database import Database
from bench.stack import BenchStack, audit, running

BATCH = 1_000
SENDERS = 4
TEXT = "x" * 150
POLL_SECONDS = 0.02
ROUND_SECONDS_MAX = 120


async def submit(client: httpx.AsyncClient, jobs: int) -> None:
    """Posts `jobs` no-op jobs in batches, some requests at a time."""
    room = asyncio.Semaphore(SENDERS)

    async def post(first: int) -> None:
        items = [
            {"kind": "bench.noop", "input": {"n": n, "text": TEXT}} for n in range(first, min(first + BATCH, jobs))
        ]
        async with room:
            answer = await client.post("/v1/jobs/batch", json={"jobs": items})
        answer.raise_for_status()

    await asyncio.gather(*(post(first) for first in range(0, jobs, BATCH)))


async def until_done(db: Database) -> None:
    """Waits until no job waits or runs."""
    open_jobs = "SELECT EXISTS (SELECT FROM outbox) OR EXISTS (SELECT FROM leases)"
    async with asyncio.timeout(ROUND_SECONDS_MAX), db.session() as connection:
        while await connection.fetchval(open_jobs):
            await asyncio.sleep(POLL_SECONDS)


async def measure(stack: BenchStack, jobs: int, rounds: int) -> None:
    """Prints jobs per second of each round."""
    db = await Database.open(stack.settings, "bench", size_max=2)
    async with httpx.AsyncClient(base_url=stack.url, timeout=60) as client:
        for nth in range(rounds):
            began = time.perf_counter()
            await submit(client, jobs)
            submitted = time.perf_counter()
            await until_done(db)
            ended = time.perf_counter()
            print(
                f"round {nth + 1}: {jobs / (ended - began):,.0f} jobs/s end to end "
                f"({jobs:,} jobs in {ended - began:.2f} s, submitted in {submitted - began:.2f} s)",
                flush=True,
            )
    await db.close()


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--jobs", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=3)
    given = arguments.parse_args()
    with running(os.environ, workers=1, handlers="bench.handlers") as stack:
        asyncio.run(measure(stack, given.jobs, given.rounds))
        return 1 if audit(stack) else 0


if __name__ == "__main__":
    sys.exit(main())
