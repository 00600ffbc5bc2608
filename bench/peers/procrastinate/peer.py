"""Procrastinate: bulk defer, then one worker that does not wait for more."""

from __future__ import annotations

import json
import os
import sys
import time

import uvloop
from procrastinate import App, PsycopgConnector

ENQUEUE_BATCH = 1_000
CONCURRENCY = 100
CONNECTIONS = 20
TEXT = "x" * 150


async def main(jobs: int) -> None:
    """Prints one line of JSON."""
    done = 0
    url = os.environ["PEER_POSTGRES_URL"]
    app = App(connector=PsycopgConnector(conninfo=url, min_size=CONNECTIONS, max_size=CONNECTIONS))

    @app.task(name="noop")
    async def noop(n: int, text: str) -> int:
        nonlocal done
        done += 1
        return n

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        began = time.perf_counter()
        for first in range(0, jobs, ENQUEUE_BATCH):
            numbers = range(first, min(first + ENQUEUE_BATCH, jobs))
            await noop.batch_defer_async(*({"n": n, "text": TEXT} for n in numbers))
        enqueued = time.perf_counter()
        await app.run_worker_async(concurrency=CONCURRENCY, wait=False, install_signal_handlers=False)
        ended = time.perf_counter()
    print(json.dumps({"done": done, "enqueue_seconds": enqueued - began, "seconds": ended - began}))


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
