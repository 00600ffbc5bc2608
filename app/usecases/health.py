"""Whether this process can do its duty, and what it depends on. Names roles, never hosts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum

from app.domain.errors import DatabaseAway
from app.domain.explain import Fleet
from app.settings import Settings
from app.store import gauges, surroundings
from app.store.database import Database
from app.store.gauges import Gauges

DEPTHS_SECONDS = 7.0  # less than what the edge gives any answer
ANSWER_SECONDS = 2.0


class Status(StrEnum):
    """`DEGRADED`: jobs are taken and none is lost, but something is missing. `DOWN`: none can be taken."""

    OK = "ok"
    DEGRADED = "degraded"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Readiness:
    """`dependencies` and `loops` map a role to `ok` or a word for what is wrong with it."""

    status: Status
    dependencies: dict[str, str]
    loops: dict[str, str]


async def readiness(db: Database, settings: Settings) -> Readiness:
    """Answers within about 2 s, whatever hangs."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            fleet = await surroundings.fleet(db, settings.suspect_seconds)
    except (DatabaseAway, TimeoutError):
        unknown = {"relay": "unknown", "workers": "unknown"}
        return Readiness(Status.DOWN, {"postgresql": "away", "broker": "unknown"}, unknown)
    return _judge(fleet, broker_used=settings.transport != "pg")


async def depths(db: Database, settings: Settings) -> tuple[Fleet, Gauges] | None:
    """The live processes and all depths; None while PostgreSQL is away."""
    try:
        async with asyncio.timeout(min(settings.database_timeout_seconds, DEPTHS_SECONDS)):
            return await surroundings.fleet(db, settings.suspect_seconds), await gauges.gauges(db)
    except (DatabaseAway, TimeoutError):
        return None


def _judge(fleet: Fleet, *, broker_used: bool) -> Readiness:
    dependencies = {"postgresql": "ok", "broker": _broker(fleet.broker_ok) if broker_used else "unused"}
    loops = {
        "relay": "ok" if fleet.leader else "no_leader" if fleet.relays else "away",
        "workers": "ok" if fleet.workers else "away",
    }
    good = {"ok", "unused"}
    healthy = good.issuperset(dependencies.values()) and good.issuperset(loops.values())
    return Readiness(Status.OK if healthy else Status.DEGRADED, dependencies, loops)


def _broker(answers: bool | None) -> str:
    match answers:
        case True:
            return "ok"
        case False:
            return "away"
        case None:
            return "unknown"
