"""The only place that opens Redis connections, and the one that names its failures.

redis-py retries commands by itself, ten times by default. A script whose reply was lost would run again, so here
nothing is retried: the error goes up, and each caller knows what to look at before it tries again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any, cast

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError, ResponseError

from app.domain.errors import BrokerAway
from app.settings import Settings

CONNECT_SECONDS = 2.0
REPLY_SECONDS = 4.0

# UNBLOCKED is how 6.2 tells a waiting reader that its stream was deleted; WRONGTYPE: a stranger took the key.
NO_GROUP = ("NOGROUP", "UNBLOCKED", "WRONGTYPE")

_SCRIPTS = Path(__file__).parent / "scripts"

Argument = str | int | bytes


class NoGroup(BrokerAway):
    """The stream or its group is not there; whoever meets this makes it again."""


@asynccontextmanager
async def broker_named() -> AsyncIterator[None]:
    """Turns the driver's ways of saying "gone" and "refused" into `BrokerAway`, a missing group into `NoGroup`."""
    try:
        yield
    except ResponseError as error:
        text = str(error)
        if any(word in text for word in NO_GROUP):
            raise NoGroup(text) from error
        raise BrokerAway(f"refused: {text}") from error
    except (RedisError, OSError) as error:
        raise BrokerAway(f"{type(error).__name__}: {error}") from error


@cache
def _script(name: str) -> tuple[str, str]:
    text = (_SCRIPTS / f"{name}.lua").read_text(encoding="utf-8")
    return text, sha1(text.encode(), usedforsecurity=False).hexdigest()


class RedisClient:
    """A few connections to one server. Replies are as the server sends them: bytes, integers, lists."""

    def __init__(self, settings: Settings, *, connections_max: int, reply_seconds: float = REPLY_SECONDS) -> None:
        pool = BlockingConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType]  # its **kwargs
            settings.redis_url.get_secret_value(),
            max_connections=connections_max,
            timeout=REPLY_SECONDS,
            socket_timeout=reply_seconds,
            socket_connect_timeout=CONNECT_SECONDS,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
        self._redis = Redis(connection_pool=pool)
        self._redis.response_callbacks.clear()
        self._execute = cast("Callable[..., Awaitable[Any]]", self._redis.execute_command)  # typed by us: its **options
        self._pool = pool

    async def command(self, *args: Argument) -> Any:
        """One command. Raises `BrokerAway`, `NoGroup`."""
        async with broker_named():
            return await self._execute(*args)

    async def script(self, name: str, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        """Runs `scripts/<name>.lua`. Raises `BrokerAway`, `NoGroup`."""
        text, digest = _script(name)
        async with broker_named():
            try:
                return await self._execute("EVALSHA", digest, len(keys), *keys, *args)
            except NoScriptError:
                return await self._execute("EVAL", text, len(keys), *keys, *args)

    async def close(self) -> None:
        """Closes the connections; does not raise."""
        try:
            async with broker_named():
                await self._redis.aclose()
                await self._pool.aclose()
        except BrokerAway:
            return
