"""Depths, counted to a bound: a scrape costs the same however much waits.

Callers name queues as they like, so the gauges name only those that operators know; all others together are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.explain import COUNT_MAX
from app.store.database import Database

OTHERS = "(others)"  # no queue can be called so


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """A queue now. Counts stop at 10,000; `oldest_seconds` is None when nothing is due."""

    queue: str
    waiting: int
    running: int
    oldest_seconds: float | None


@dataclass(frozen=True, slots=True)
class Gauges:
    """What waits, runs and lies dead. Counts stop at 10,000; `dead` is of the newest 10,000.

    `broken` counts what the leader's last audit of young jobs found, by invariant; `audited_at` is when, in seconds
    since 1970, None before the first.
    """

    queues: list[QueueDepth]
    deferred: int
    dead: dict[str, int]
    broken: dict[str, int]
    audited_at: float | None


async def queues(db: Database) -> list[QueueDepth]:
    """Every queue in which something is due or runs, by name. Raises `DatabaseAway`."""
    waiting = {row["queue"]: row for row in await db.fetch("gauge_waiting", COUNT_MAX)}
    running = {row["queue"]: int(row["running"]) for row in await db.fetch("gauge_running", COUNT_MAX)}
    return [
        QueueDepth(
            queue=name,
            waiting=waiting[name]["waiting"] if name in waiting else 0,
            running=running.get(name, 0),
            oldest_seconds=waiting[name]["oldest_seconds"] if name in waiting else None,
        )
        for name in sorted(waiting.keys() | running.keys())
    ]


async def gauges(db: Database) -> Gauges:
    """All depths. Raises `DatabaseAway`."""
    audits = await db.fetch("gauge_audits")
    known = {row["queue"] for row in await db.fetch("known_queues")}
    depths = await queues(db)
    return Gauges(
        queues=[depth for depth in depths if depth.queue in known]
        + _together([depth for depth in depths if depth.queue not in known]),
        deferred=await db.fetchval("gauge_deferred", COUNT_MAX),
        dead={row["reason"]: row["dead"] for row in await db.fetch("gauge_dead", COUNT_MAX)},
        broken={row["invariant"]: row["findings"] for row in audits},
        audited_at=min((row["taken_at"] for row in audits), default=None),
    )


def _together(depths: Sequence[QueueDepth]) -> list[QueueDepth]:
    if not depths:
        return []
    waiting, running = sum(depth.waiting for depth in depths), sum(depth.running for depth in depths)
    oldest = max((depth.oldest_seconds for depth in depths if depth.oldest_seconds is not None), default=None)
    return [QueueDepth(OTHERS, min(waiting, COUNT_MAX), min(running, COUNT_MAX), oldest)]
