"""The last look at a world: nothing broken, nothing left at the broker, nobody left running."""

from __future__ import annotations

import asyncio

import redis

from app.transport import keys
from tests.chaos.records import Finding
from tests.chaos.world import World, until

QUIET_SECONDS = 6.0  # and a lease: what nobody acknowledged is taken over when it has been idle for so long
IDLE = """
SELECT application_name FROM pg_stat_activity
WHERE state LIKE 'idle in transaction%' AND datname = current_database() AND application_name LIKE 'outlast %'
"""


async def look(world: World) -> list[Finding]:
    """What is wrong once every job has ended. Stops the processes."""
    findings = [
        Finding("ended", "", f"{one.name} {one.pid}: {one.popen.returncode}")
        for one in (world.api, *world.relays, *world.workers)
        if not one.alive()
    ]
    audit = await asyncio.to_thread(world.stack.run, "audit")
    if audit.returncode != 0:
        findings.append(Finding("audit", "", f"exit {audit.returncode}: {audit.stdout[-1000:]}{audit.stderr[-500:]}"))
    findings += await _broker(world)
    findings += await _idle(world)
    findings += [Finding("orphan", "", left) for left in await world.stop()]
    return findings


async def _broker(world: World) -> list[Finding]:
    address, stream = world.redis.address, keys.stream("default")
    left = {"entries": 0, "pending": 0}

    async def empty() -> bool:
        with redis.Redis(port=address.port, password=address.password) as broker:
            left["entries"] = broker.xlen(stream)
            left["pending"] = broker.xpending(stream, keys.GROUP)["pending"] if broker.exists(stream) else 0
        return not any(left.values())

    return (
        [] if await until(empty, world.settings.lease_seconds + QUIET_SECONDS) else [Finding("broker", "", f"{left}")]
    )


async def _idle(world: World) -> list[Finding]:
    left: list[str] = []

    async def none() -> bool:
        left[:] = [row["application_name"] for row in await world.fetch(IDLE)]
        return not left

    return [] if await until(none, QUIET_SECONDS) else [Finding("idle in transaction", "", name) for name in left]
