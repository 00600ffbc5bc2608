"""The last look at a world: nothing broken, nothing left at the broker, no process grown, nobody left running."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import asyncpg
import redis

from app.settings import Settings
from app.transport import keys
from tests.chaos import oracle
from tests.chaos.records import Finding
from tests.chaos.world import HANDLER_LOG, World, until
from tests.processes import Stack, children
from workers.dev.redis import Redis


class Site(Protocol):
    """Servers and processes that a run leaves behind."""

    @property
    def redis(self) -> Redis: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def stack(self) -> Stack: ...
    async def fetch(self, statement: str, *args: object) -> list[asyncpg.Record]: ...


QUIET_SECONDS = 6.0  # and a lease: what nobody acknowledged is taken over when it has been idle for so long
IDLE = """
SELECT application_name FROM pg_stat_activity
WHERE state LIKE 'idle in transaction%' AND datname = current_database() AND application_name LIKE 'outlast %'
"""

SOCKETS_AT_FIRST = 3  # a heart's loop, and its first connection
SOCKETS_MORE = 16  # connections are made when they are first needed, and kept: a pool, the broker's, the callers'
GROWTH = 1.2


@dataclass(frozen=True, slots=True)
class Weight:
    """What a process holds: sockets, other descriptors but for the handler logs, one a run, and resident memory."""

    sockets: int
    others: int
    rss_kib: int


def weigh(site: Site) -> dict[int, Weight]:
    """Every process at work, children included, by its pid. One that is kept ready or just begins is not yet."""
    pids = [pid for one in site.stack.processes if one.alive() for pid in (one.pid, *children(one.pid))]
    weights = {pid: _weight(pid) for pid in pids}
    return {pid: weight for pid, weight in weights.items() if weight is not None and weight.sockets > SOCKETS_AT_FIRST}


async def look(world: World, before: Mapping[int, Weight]) -> list[Finding]:
    """What is wrong once every job has ended. `before` is what the processes held after the run before this one."""
    findings = [
        Finding("ended", "", f"{one.name} {one.pid}: {one.popen.returncode}")
        for one in (world.api, *world.relays, *world.workers)
        if not one.alive()
    ]
    return findings + await left(world, before)


async def left(site: Site, before: Mapping[int, Weight]) -> list[Finding]:
    """What is wrong with record, broker, sessions and processes; `before` as in `look`."""
    findings = await oracle.checks(site.settings)
    findings += await _broker(site)
    findings += await _idle(site)
    findings += await _grown(site, before)
    return findings


async def end(world: World) -> list[Finding]:
    """The audit, as an operator runs it; then stops the processes: who is left."""
    audit = await oracle.command(world.stack)
    return audit + [Finding("orphan", "", left) for left in await world.stop()]


async def _broker(site: Site) -> list[Finding]:
    address, stream = site.redis.address, keys.stream("default")
    left = {"entries": 0, "pending": 0}

    async def empty() -> bool:
        with redis.Redis(port=address.port, password=address.password) as broker:
            left["entries"] = broker.xlen(stream)
            left["pending"] = broker.xpending(stream, keys.GROUP)["pending"] if broker.exists(stream) else 0
        return not any(left.values())

    return [] if await until(empty, site.settings.lease_seconds + QUIET_SECONDS) else [Finding("broker", "", f"{left}")]


async def _idle(site: Site) -> list[Finding]:
    left: list[str] = []

    async def none() -> bool:
        left[:] = [row["application_name"] for row in await site.fetch(IDLE)]
        return not left

    return [] if await until(none, QUIET_SECONDS) else [Finding("idle in transaction", "", name) for name in left]


async def _grown(site: Site, before: Mapping[int, Weight]) -> list[Finding]:
    """Processes that have done a whole run before and hold more now, also after a while."""
    grown: dict[int, str] = {}

    async def as_before() -> bool:
        after = weigh(site)
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
