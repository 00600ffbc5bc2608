"""The broker as a stranger or an operator would use it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from redis.asyncio import Redis

from app.settings import Settings


class RawRedis:
    """Any command; replies as the server sends them, as text."""

    def __init__(self, settings: Settings) -> None:
        url = settings.redis_url.get_secret_value()
        self._redis = Redis.from_url(url, protocol=2, decode_responses=True)  # pyright: ignore[reportUnknownMemberType]  # its **kwargs
        self._redis.response_callbacks.clear()

    async def __call__(self, *command: str | int) -> Any:
        execute = cast("Callable[..., Awaitable[Any]]", self._redis.execute_command)  # typed by us: its **options
        return await execute(*command)

    async def close(self) -> None:
        await self._redis.aclose()
