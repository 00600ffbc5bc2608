"""Opens the transport that the settings name. The transport `pg` has no broker, so nothing to open."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from app.settings import Settings
from app.transport.base import Publisher, Subscriber
from app.transport.redis_publisher import RedisPublisher
from app.transport.redis_subscriber import RedisSubscriber


def subscriber(settings: Settings, worker_id: UUID, queues: Sequence[str]) -> Subscriber:
    """The consumer side for one worker process; connects on first use. ValueError for `pg`."""
    _require_broker(settings)
    return RedisSubscriber(settings, worker_id, queues)


def publisher(settings: Settings) -> Publisher:
    """The publishing side; connects on first use. ValueError for `pg`."""
    _require_broker(settings)
    return RedisPublisher(settings)


def _require_broker(settings: Settings) -> None:
    if settings.transport == "pg":
        raise ValueError("transport pg has no broker: workers claim straight from PostgreSQL")
