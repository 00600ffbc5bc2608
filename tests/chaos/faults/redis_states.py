"""Redis is there and of no use: full, read-only, frozen."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence
from typing import Any, cast

import redis

from tests.chaos.faults.scene import Scene, fault
from workers.dev.redis import Redis

NOBODY = ("127.0.0.1", 1)


def command(server: Redis, *words: str | int | bytes) -> Any:
    """The reply to one command, sent straight to the server by no road."""
    return commands(server, [words])[0]


def commands(server: Redis, many: Sequence[Sequence[str | int | bytes]]) -> list[Any]:
    """The replies to many, sent at once: the roads stand still meanwhile."""
    address = server.address
    with redis.Redis(port=address.port, password=address.password) as broker:
        pipeline = cast("Any", broker).pipeline(transaction=False)
        for words in many:
            pipeline.execute_command(*words)
        return pipeline.execute()


@fault("Redis full")
async def fill(scene: Scene, _: float) -> str | None:
    """No memory is left, and nothing is evicted."""
    server = scene.world.redis
    command(server, "CONFIG", "SET", "maxmemory", 1)
    return await _refuses(scene, "errorstat_OOM", ("CONFIG", "SET", "maxmemory", 0))


@fault("Redis read-only")
async def make_read_only(scene: Scene, _: float) -> str | None:
    """A replica of a master that is not there, as after a failover that went half through."""
    server = scene.world.redis
    command(server, "REPLICAOF", *NOBODY)
    return await _refuses(scene, "errorstat_READONLY", ("REPLICAOF", "NO", "ONE"))


@fault("Redis frozen")
async def freeze(scene: Scene, _: float) -> str | None:
    """Connections are made and nothing is ever answered."""
    process, seconds = scene.world.redis.process, scene.world.shape.lasting_seconds
    process.send_signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        process.send_signal(signal.SIGCONT)
    return f"{seconds} s"


async def _refuses(scene: Scene, error: str, cure: tuple[str | int, ...]) -> str | None:
    """Leaves the server as it was made for a while; nothing is hit when it refused nobody."""
    server = scene.world.redis
    before = _refused(server, error)
    try:
        await asyncio.sleep(scene.world.shape.lasting_seconds)
    finally:
        command(server, *cure)
    refused = _refused(server, error) - before
    return f"{refused} commands refused" if refused else None


def _refused(server: Redis, error: str) -> int:
    info = cast("Mapping[str, Mapping[str, int]]", command(server, "INFO", "errorstats"))
    return info.get(error, {}).get("count", 0)
