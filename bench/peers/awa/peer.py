"""Awa: bulk enqueue by COPY, then its Rust worker with a Python handler."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from dataclasses import dataclass

import uvloop
from awa import AsyncClient, Job

ENQUEUE_BATCH = 1_000
CONCURRENCY = 100
CLAIMERS = 4
POLL_SECONDS = 0.005
TEXT = "x" * 150


@dataclass
class Noop:
    n: int
    text: str


async def main(jobs: int) -> None:
    """Prints one line of JSON."""
    done = 0
    client = AsyncClient(os.environ["PEER_POSTGRES_URL"])
    await client.migrate()
    await client.install_queue_storage()

    @client.task(Noop)
    async def noop(job: Job[Noop]) -> None:
        nonlocal done
        done += 1

    began = time.perf_counter()
    for first in range(0, jobs, ENQUEUE_BATCH):
        numbers = range(first, min(first + ENQUEUE_BATCH, jobs))
        await client.enqueue_many_copy([Noop(n, TEXT) for n in numbers])
    enqueued = time.perf_counter()
    await client.start([{"name": "default", "max_workers": CONCURRENCY, "claimers": CLAIMERS}])
    while done < jobs:
        await asyncio.sleep(POLL_SECONDS)
    ended = time.perf_counter()
    await client.shutdown()
    await client.close()
    print(json.dumps({"done": done, "enqueue_seconds": enqueued - began, "seconds": ended - began}))


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
