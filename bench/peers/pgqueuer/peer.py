"""PgQueuer: bulk enqueue, then one process in drain mode on one connection, as its own benchmark does it."""

from __future__ import annotations

import json
import os
import sys
import time

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

ENQUEUE_BATCH = 1_000
DEQUEUE_BATCH = 500
PAYLOAD = json.dumps({"n": 1, "text": "x" * 150}).encode()


async def main(jobs: int) -> None:
    """Prints one line of JSON."""
    connection = await asyncpg.connect(os.environ["PEER_POSTGRES_URL"])
    driver = AsyncpgDriver(connection)
    queries = Queries(driver)
    await queries.install()
    pgq = PgQueuer(driver)
    done = 0

    @pgq.entrypoint("noop")
    async def noop(job: Job) -> None:
        nonlocal done
        json.loads(job.payload or b"")
        done += 1

    began = time.perf_counter()
    for first in range(0, jobs, ENQUEUE_BATCH):
        count = min(ENQUEUE_BATCH, jobs - first)
        await queries.enqueue(["noop"] * count, [PAYLOAD] * count, [0] * count)
    enqueued = time.perf_counter()
    await pgq.run(batch_size=DEQUEUE_BATCH, mode=QueueExecutionMode.drain)
    ended = time.perf_counter()
    await connection.close()
    print(json.dumps({"done": done, "enqueue_seconds": enqueued - began, "seconds": ended - began}))


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
