"""Both sides of the transport, and the bare server under them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest

from app.settings import Settings
from app.transport.base import Publisher, Subscriber
from app.transport.connect import publisher, subscriber
from tests.integration.raw_redis import RawRedis
from tests.integration.streams.entries import QUEUE, Open


@pytest.fixture
async def raw(settings: Settings) -> AsyncIterator[RawRedis]:
    server = RawRedis(settings)
    yield server
    await server.close()


@pytest.fixture
async def relay(settings: Settings) -> AsyncIterator[Publisher]:
    side = publisher(settings)
    yield side
    await side.close()


@pytest.fixture
async def worker(settings: Settings) -> AsyncIterator[Open]:
    opened: list[Subscriber] = []

    def open_one(worker_id: UUID | None = None, queues: tuple[str, ...] = (QUEUE,)) -> Subscriber:
        opened.append(subscriber(settings, worker_id or uuid4(), queues))
        return opened[-1]

    yield open_one
    for one in opened:
        await one.close()
