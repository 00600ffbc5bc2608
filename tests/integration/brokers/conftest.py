"""Both sides of a transport, on each broker: what one promises the others promise."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from uuid import UUID, uuid4

import pytest

from app.settings import Settings
from app.transport.base import Publisher, Subscriber
from app.transport.connect import publisher, subscriber

QUEUE = "mails.out"
LEASE_SECONDS = 3.0

Open = Callable[..., Subscriber]


@pytest.fixture(params=["redis", "sqs"])
def broker(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    """Settings for a broker that holds nothing of ours, with a short lease."""
    more = {"lease_seconds": LEASE_SECONDS, "block_seconds": 0.5, "transport": request.param}
    if request.param == "sqs":
        more |= {"sqs_endpoint_url": request.getfixturevalue("sqs_url"), "sqs_prefix": f"t{uuid4().hex[:12]}-"}
    return settings.model_copy(update=more)


@pytest.fixture
async def relay(broker: Settings) -> AsyncIterator[Publisher]:
    side = publisher(broker)
    yield side
    await side.close()


@pytest.fixture
async def worker(broker: Settings) -> AsyncIterator[Open]:
    opened: list[Subscriber] = []

    def open_one(worker_id: UUID | None = None, queues: tuple[str, ...] = (QUEUE,)) -> Subscriber:
        opened.append(subscriber(broker, worker_id or uuid4(), queues))
        return opened[-1]

    yield open_one
    for one in opened:
        await one.close()
