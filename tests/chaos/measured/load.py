"""Load without end: as much as is taken, or so many jobs a second whatever becomes of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID

import asyncpg
import httpx

from app.store.database import AWAY
from tests.chaos.measured.scene import Scene

BATCH = 250
POLL_SECONDS = 0.02
OPEN_LOOP_SECONDS = 0.1
# From the oldest that waited on: where a snapshot is held, dead rows without end lie before it.
WAITING = """
SELECT count(*) AS waiting, (SELECT job_id FROM outbox WHERE job_id >= $1 ORDER BY job_id LIMIT 1) AS oldest
FROM outbox WHERE job_id >= $1
"""


@asynccontextmanager
async def saturated(scene: Scene, kind: str, given: dict[str, Any], *, waiting: int) -> AsyncIterator[None]:
    """While it is entered about `waiting` jobs wait: each that is taken is followed by another."""
    async with _going(_keep_waiting(scene, kind, given, waiting)):
        await asyncio.sleep(1)
        yield


@asynccontextmanager
async def offered(scene: Scene, kind: str, given: dict[str, Any], *, a_second: float) -> AsyncIterator[None]:
    """While it is entered `a_second` jobs are submitted each second."""
    async with _going(_offer(scene, kind, given, a_second)):
        yield


@asynccontextmanager
async def _going(work: Any) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _keep_waiting(scene: Scene, kind: str, given: dict[str, Any], waiting: int) -> None:
    oldest = UUID(int=0)
    while True:
        with suppress(httpx.TransportError, asyncpg.PostgresError, *AWAY):
            [found] = await scene.fetch(WAITING, oldest)
            oldest = found["oldest"] or oldest
            batches = max(0, waiting - found["waiting"]) // BATCH
            await asyncio.gather(*(scene.submit(kind, [given] * BATCH) for _ in range(batches)))
        await asyncio.sleep(POLL_SECONDS)


async def _offer(scene: Scene, kind: str, given: dict[str, Any], a_second: float) -> None:
    began, sent = time.monotonic(), 0
    async with asyncio.TaskGroup() as calls:
        while True:
            due = int((time.monotonic() - began) * a_second)
            if due > sent:
                calls.create_task(scene.submit(kind, [given] * (due - sent)))
                sent = due
            await asyncio.sleep(OPEN_LOOP_SECONDS)
