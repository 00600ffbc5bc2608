"""Docket: added many in a pipeline, then one worker until it has finished."""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import timedelta

import uvloop
from docket import Docket, Worker

ENQUEUE_BATCH = 1_000
CONCURRENCY = 100
CONNECTIONS_MAX = 2 * CONCURRENCY
POLL = timedelta(milliseconds=5)
TEXT = "x" * 150


async def main(jobs: int) -> None:
    """Prints one line of JSON."""
    done = 0

    async def noop(n: int, text: str) -> int:
        nonlocal done
        done += 1
        return n

    url = f"{os.environ['PEER_REDIS_URL']}?max_connections={CONNECTIONS_MAX}"
    async with Docket(url=url) as docket:
        began = time.perf_counter()
        for first in range(0, jobs, ENQUEUE_BATCH):
            numbers = range(first, min(first + ENQUEUE_BATCH, jobs))
            await docket.add_many([docket.call(noop)(n, TEXT) for n in numbers])
        enqueued = time.perf_counter()
        async with Worker(docket, concurrency=CONCURRENCY, minimum_check_interval=POLL) as worker:
            await worker.run_until_finished()
        ended = time.perf_counter()
    print(json.dumps({"done": done, "enqueue_seconds": enqueued - began, "seconds": ended - began}))


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
