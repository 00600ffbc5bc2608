"""taskiq-redis: its stream broker, which acknowledges; sent many at a time, then one receiver."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time

import uvloop
from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker

TOGETHER = 100
CONCURRENCY = 100
POLL_SECONDS = 0.005
TEXT = "x" * 150


async def main(jobs: int) -> None:
    """Prints one line of JSON."""
    done = 0
    broker = RedisStreamBroker(os.environ["PEER_REDIS_URL"], xread_count=CONCURRENCY)

    @broker.task(task_name="noop")
    async def noop(n: int, text: str) -> int:
        nonlocal done
        done += 1
        return n

    await broker.startup()
    began = time.perf_counter()
    for first in range(0, jobs, TOGETHER):
        numbers = range(first, min(first + TOGETHER, jobs))
        await asyncio.gather(*(noop.kiq(n, TEXT) for n in numbers))
    enqueued = time.perf_counter()
    broker.is_worker_process = True
    receiver = asyncio.create_task(run_receiver_task(broker, max_async_tasks=CONCURRENCY))
    while done < jobs and not receiver.done():
        await asyncio.sleep(POLL_SECONDS)
    ended = time.perf_counter()
    receiver.cancel()
    await asyncio.wait([receiver])
    await broker.shutdown()
    print(json.dumps({"done": done, "enqueue_seconds": enqueued - began, "seconds": ended - began}))


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
