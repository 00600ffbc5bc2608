"""streaq: enqueued many in a pipeline, then one worker in burst mode."""

from __future__ import annotations

import json
import os
import sys
import time

import uvloop
from streaq import Worker

ENQUEUE_BATCH = 1_000
CONCURRENCY = 100
TEXT = "x" * 150


async def main(jobs: int) -> None:
    """Prints one line of JSON."""
    done = 0
    worker = Worker(redis_url=os.environ["PEER_REDIS_URL"], concurrency=CONCURRENCY, handle_signals=False)
    worker.burst = True

    @worker.task(name="noop")
    async def noop(n: int, text: str) -> int:
        nonlocal done
        done += 1
        return n

    async with worker:
        began = time.perf_counter()
        for first in range(0, jobs, ENQUEUE_BATCH):
            numbers = range(first, min(first + ENQUEUE_BATCH, jobs))
            await worker.enqueue_many([noop.enqueue(n, TEXT) for n in numbers])
        enqueued = time.perf_counter()
    await worker.run_async()
    ended = time.perf_counter()
    print(json.dumps({"done": done, "enqueue_seconds": enqueued - began, "seconds": ended - began}))


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
