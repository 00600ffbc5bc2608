"""Lets old jobs go, week by week, as the leader's background work."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from app.settings import Settings
from app.store.audit import clock
from app.store.database import Database, connect
from app.store.retention import Bounds, Retention
from app.telemetry import log

STATEMENT_SECONDS_MAX = 3_600.0
TRIES = 20
AGAIN_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Retired:
    """How much one run did; `waiting` weeks could not be exchanged, as somebody held a lock on them."""

    weeks: int
    waiting: int


class Retirer:
    """Any number may run at once; one does the work."""

    def __init__(self, settings: Settings, db: Database) -> None:
        self._settings = settings
        self._db = db

    async def run_once(self) -> Retired:
        """Lets go what is older than the settings say. Raises `DatabaseAway`."""
        now = await clock(self._db)
        bounds = Bounds(
            done=now - timedelta(days=self._settings.retention_days),
            dead=now - timedelta(days=self._settings.dead_retention_days),
        )
        session = await connect(self._settings, "relay retention", timeout_seconds=STATEMENT_SECONDS_MAX)
        try:
            retention = Retention(session)
            return await self._retire(retention, bounds) if await retention.alone() else Retired(0, 0)
        finally:
            session.terminate()

    async def _retire(self, retention: Retention, bounds: Bounds) -> Retired:
        await retention.drop()
        weeks = await retention.weeks(bounds)
        waiting = 0
        for week in weeks:
            await retention.copy(week, bounds)
            keys = await retention.drop_keys(week)
            kept = await self._swapped(retention, week, bounds)
            waiting += kept is None
            log.info(
                "retired" if kept is not None else "retirement_waits", week=week, jobs_kept=kept, keys_dropped=keys
            )
            await retention.drop()
        return Retired(len(weeks) - waiting, waiting)

    async def _swapped(self, retention: Retention, week: str, bounds: Bounds) -> int | None:
        for _ in range(TRIES):
            kept = await retention.swap(week, bounds)
            if kept is not None:
                return kept
            await asyncio.sleep(AGAIN_SECONDS)
        return None
