"""A queue's stream on a real server: what tests put into it, and what they ask of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

from app.transport import keys
from app.transport.base import Delivery, Publisher, Subscriber
from tests.integration.raw_redis import RawRedis

QUEUE = "default"
STREAM = keys.stream(QUEUE)
WINDOW = 4_096

Open = Callable[..., Subscriber]


async def pending(raw: RawRedis) -> int:
    return (await raw("XPENDING", STREAM, keys.GROUP))[0]


async def publish(relay: Publisher, count: int, queue: str = QUEUE) -> list[tuple[UUID, int]]:
    rows = [(uuid4(), 0) for _ in range(count)]
    await relay.read_all(queue, WINDOW)
    answer = await relay.publish(queue, rows, WINDOW)
    assert len(answer.receipts) == count
    return rows


def fences(deliveries: list[Delivery]) -> list[tuple[UUID, int]]:
    return [(one.job_id, one.attempt) for one in deliveries]


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(5):
        while not await condition():  # the server has no event for it
            await asyncio.sleep(0.01)
