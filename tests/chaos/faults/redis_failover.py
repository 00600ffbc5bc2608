"""Redis fails over to a replica that had lost its master a while before, and later back to the old master."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

from app.transport import keys
from tests.chaos.faults.redis_states import command
from tests.chaos.faults.scene import HIT_SECONDS, Scene, fault
from tests.chaos.world import Road, until
from workers.dev.embedded import free_port
from workers.dev.redis import Redis

SYNC_SECONDS = 20.0
STALE_SECONDS = 1.5


@fault("Redis failed over")
async def fail_over(scene: Scene, _: float) -> str | None:
    """What was published and acknowledged meanwhile is unknown to the one, and then to the other."""
    master = scene.world.redis
    with _server_like(master) as replica:
        command(master, "CONFIG", "SET", "repl-diskless-sync-delay", 0)
        command(replica, "CONFIG", "SET", "masterauth", master.address.password)
        command(replica, "REPLICAOF", "127.0.0.1", master.address.port)
        if not await until(lambda: _synchronous(replica), SYNC_SECONDS):
            return None
        command(replica, "REPLICAOF", "NO", "ONE")
        await asyncio.sleep(STALE_SECONDS)
        known = _newest(replica)
        if not await until(lambda: _is_beyond(master, known), HIT_SECONDS):
            return None
        newest = _newest(master)
        _lead_to(scene, replica)
        await asyncio.sleep(scene.world.shape.lasting_seconds)
        _lead_to(scene, master)
    return f"to entry {known} of {newest}"


def _server_like(master: Redis) -> Redis:
    """A server of its own that has the master's password: clients are led to it and know no other."""
    replica = Redis(master.root / "replica", durable=False)
    replica.folder.mkdir(parents=True, exist_ok=True)
    kept = {"port": free_port(), "password": master.address.password}
    (replica.folder / "address.json").write_text(json.dumps(kept))
    return replica


async def _synchronous(replica: Redis) -> bool:
    info = cast("dict[str, Any]", command(replica, "INFO", "replication"))
    return info.get("master_link_status") == "up"


async def _is_beyond(master: Redis, known: str) -> bool:
    return _newest(master) != known


def _newest(server: Redis) -> str:
    """The id of the newest entry that the server ever had in the stream."""
    stream = keys.stream("default")
    if not command(server, "EXISTS", stream):
        return "none"
    info = cast("dict[str, Any]", command(server, "XINFO STREAM", stream))
    return _text(info["last-generated-id"])


def _lead_to(scene: Scene, server: Redis) -> None:
    for name in (Road.RELAY_REDIS, Road.WORKER_REDIS):
        road = scene.world.roads[name]
        road.target = server.address.port
        road.cut()


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode()
