"""arq: enqueued many at a time, then one worker in burst mode."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any

import uvloop
from arq import create_pool
from arq.connections import RedisSettings
from arq.worker import Worker

TOGETHER = 100
CONCURRENCY = 100
POLL_SECONDS = 0.01
TEXT = "x" * 150


async def noop(ctx: dict[str, Any], n: int, text: str) -> int:
    ctx["done"].append(n)
    return n


async def main(jobs: int) -> None:
    """Prints one line of JSON."""
    settings = RedisSettings.from_dsn(os.environ["PEER_REDIS_URL"])
    pool = await create_pool(settings)
    began = time.perf_counter()
    for first in range(0, jobs, TOGETHER):
        numbers = range(first, min(first + TOGETHER, jobs))
        await asyncio.gather(*(pool.enqueue_job("noop", n, TEXT) for n in numbers))
    enqueued = time.perf_counter()
    done: list[int] = []
    worker = Worker(
        functions=[noop],
        redis_pool=pool,
        burst=True,
        max_jobs=CONCURRENCY,
        poll_delay=POLL_SECONDS,
        ctx={"done": done},
        handle_signals=False,
    )
    await worker.main()
    ended = time.perf_counter()
    print(json.dumps({"done": len(done), "enqueue_seconds": enqueued - began, "seconds": ended - began}))


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
