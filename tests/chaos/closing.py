"""The last look at a world: nothing broken, nothing left at the broker, no process grown, nobody left running."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import redis

from app.transport import keys
from tests.chaos.records import Finding
from tests.chaos.world import HANDLER_LOG, World, until
from tests.processes import children

QUIET_SECONDS = 6.0  # and a lease: what nobody acknowledged is taken over when it has been idle for so long
IDLE = """
SELECT application_name FROM pg_stat_activity
WHERE state LIKE 'idle in transaction%' AND datname = current_database() AND application_name LIKE 'outlast %'
"""

SOCKETS_MORE = 16  # connections are made when they are first needed, and kept: a pool, the broker's, the callers'
GROWTH = 1.2


@dataclass(frozen=True, slots=True)
class Weight:
    """What a process holds: sockets, other descriptors but for the handler logs, one a run, and resident memory."""

    sockets: int
    others: int
    rss_kib: int


def weigh(world: World) -> dict[int, Weight]:
    """Every process at work, children included, by its pid; a child that is kept ready has no connection yet."""
    pids = [pid for one in world.stack.processes if one.alive() for pid in (one.pid, *children(one.pid))]
    weights = {pid: _weight(pid) for pid in pids}
    return {pid: weight for pid, weight in weights.items() if weight is not None and weight.sockets}


async def look(world: World, before: Mapping[int, Weight]) -> list[Finding]:
    """What is wrong once every job has ended. `before` is what the processes held after the run before this one."""
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
    findings += await _grown(world, before)
    return findings


async def end(world: World) -> list[Finding]:
    """Stops the processes; who is left."""
    return [Finding("orphan", "", left) for left in await world.stop()]


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


async def _grown(world: World, before: Mapping[int, Weight]) -> list[Finding]:
    """Processes that have done a whole run before and hold more now, also after a while."""
    grown: dict[int, str] = {}

    async def as_before() -> bool:
        after = weigh(world)
        grown.clear()
        grown.update({pid: f"{before[pid]} and now {after[pid]}" for pid in before.keys() & after.keys()})
        for pid in list(grown):
            if not _heavier(before[pid], after[pid]):
                del grown[pid]
        return not grown

    found = not await until(as_before, QUIET_SECONDS)
    return [Finding("grown", "", f"process {pid}: {what}") for pid, what in grown.items()] if found else []


def _heavier(before: Weight, after: Weight) -> bool:
    return (
        after.others > before.others
        or after.sockets > before.sockets + SOCKETS_MORE
        or after.rss_kib > before.rss_kib * GROWTH
    )


def _weight(pid: int) -> Weight | None:
    """None for a process that has just ended (Linux)."""
    folder = Path(f"/proc/{pid}")
    try:
        links = [str(one.readlink()) for one in (folder / "fd").iterdir()]
        status = (folder / "status").read_text()
    except OSError:
        return None
    rss = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")), 0)
    sockets = sum(link.startswith("socket:") for link in links)
    logs = sum(link.endswith(HANDLER_LOG) for link in links)
    return Weight(sockets, len(links) - sockets - logs, rss)
