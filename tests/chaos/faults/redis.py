"""Redis: emptied, or away and back empty."""

from __future__ import annotations

import asyncio

import redis

from app.transport import keys
from tests.chaos.comeback import bring_back
from tests.chaos.faults.scene import Scene, fault


@fault("Redis flushed")
async def flush(scene: Scene, _: float) -> str | None:
    address = scene.world.redis.address
    with redis.Redis(port=address.port, password=address.password) as broker:
        held = broker.xlen(keys.stream("default"))
        broker.execute_command("FLUSHALL")  # pyright: ignore[reportUnknownMemberType]  # its **options
    return f"{held} entries"


@fault("Redis away")
async def take_away(scene: Scene, _: float) -> str | None:
    """Killed, and back empty after a while."""
    seconds, server = scene.world.shape.lasting_seconds, scene.world.redis
    server.process.kill()
    server.process.wait()
    await asyncio.sleep(seconds)
    await bring_back(server)
    return f"{seconds} s"
