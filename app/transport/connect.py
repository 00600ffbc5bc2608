"""Opens the transport that the settings name. The transport `pg` has no broker, so nothing to open."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from app.settings import Settings
from app.transport.base import Publisher, Subscriber

NO_BROKER = "transport pg has no broker: workers claim straight from PostgreSQL"


def subscriber(settings: Settings, worker_id: UUID, queues: Sequence[str]) -> Subscriber:
    """The consumer side for one worker process; connects on first use. ValueError for `pg`."""
    match settings.transport:
        case "redis":
            from app.transport.redis_subscriber import RedisSubscriber

            return RedisSubscriber(settings, worker_id, queues)
        case "sqs":
            from app.transport.sqs_subscriber import SqsSubscriber

            return SqsSubscriber(settings, worker_id, queues)
        case "pg":
            raise ValueError(NO_BROKER)


def publisher(settings: Settings) -> Publisher:
    """The publishing side; connects on first use. ValueError for `pg`."""
    match settings.transport:
        case "redis":
            from app.transport.redis_publisher import RedisPublisher

            return RedisPublisher(settings)
        case "sqs":
            from app.transport.sqs_publisher import SqsPublisher

            return SqsPublisher(settings)
        case "pg":
            raise ValueError(NO_BROKER)
