"""SAQ: enqueued many at a time, then one worker."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any

import uvloop
from saq import Queue, Worker

TOGETHER = 100
CONCURRENCY = 100
POLL_SECONDS = 0.005
TEXT = "x" * 150


async def main(jobs: int) -> None:
    """Prints one line of JSON."""
    done = 0

    async def noop(ctx: dict[str, Any], *, n: int, text: str) -> int:
        nonlocal done
        done += 1
        return n

    queue = Queue.from_url(os.environ["PEER_REDIS_URL"])
    await queue.connect()
    began = time.perf_counter()
    for first in range(0, jobs, TOGETHER):
        numbers = range(first, min(first + TOGETHER, jobs))
        await asyncio.gather(*(queue.enqueue("noop", n=n, text=TEXT) for n in numbers))
    enqueued = time.perf_counter()
    worker = Worker(queue, functions=[("noop", noop)], concurrency=CONCURRENCY)
    running = asyncio.create_task(worker.start())
    while done < jobs and not running.done():
        await asyncio.sleep(POLL_SECONDS)
    ended = time.perf_counter()
    await worker.stop()
    await queue.disconnect()
    print(json.dumps({"done": done, "enqueue_seconds": enqueued - began, "seconds": ended - began}))


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
