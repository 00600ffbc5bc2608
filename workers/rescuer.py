"""Takes jobs back from processes that died or froze.

Dead is observed, not read: on one uninterrupted session of its own the rescuer has seen the same heartbeat for
`SUSPECT_SECONDS` (then the process's lock must be free as well) or for `LEASE_SECONDS`, by its own monotonic clock.
A session that breaks forgets all it saw: a restart of the database frees every lock and ages every heartbeat, and
steals nothing. What a supervisor has said (`left_at`) needs no observing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.domain.errors import DatabaseAway
from app.failpoints import Point, reach
from app.settings import Settings
from app.store.database import Session, connect
from app.store.fleet import Observed, Rescued, Suspect, observed, rescue, rescue_overdue
from app.telemetry import frames, log

OVERDUE_SECONDS = 1.0
AT_MOST_A_HUNDREDTH = 100  # every lease is read for it, dead rows too


@dataclass(slots=True)
class _Sight:
    """A heartbeat, since when it has been seen unchanged, and when it was last acted on (monotonic seconds)."""

    heartbeat_at: datetime
    since: float
    tried_at: float


class Rescuer:
    """Watches the fleet on one session; `me` is never rescued by itself."""

    def __init__(self, settings: Settings, me: UUID, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._me = me
        self._clock = clock
        self._connection: Session | None = None
        self._sights: dict[UUID, _Sight] = {}
        self._overdue_at = float("-inf")
        self._one_look = asyncio.Lock()

    async def run(self, on_rescue: Callable[[Sequence[Rescued]], None]) -> None:
        """Watches until cancelled. Raises what nobody foresaw once no look has succeeded for a lease's time."""
        looked_at = self._clock()
        while True:
            try:
                rescued = await self.run_once()
                looked_at = self._clock()
                if rescued:
                    on_rescue(rescued)
            except DatabaseAway as error:
                log.warning("rescuer_cannot_see", error=str(error))
                await asyncio.sleep(self._settings.heartbeat_seconds)
            except Exception as error:
                # One look that fails ends none of those to come, as there may be nobody else who looks. Who fails at
                # every one is blind, and another may see.
                if self._clock() - looked_at > self._settings.lease_seconds:
                    raise
                log.error("rescue_failed", error_type=type(error).__qualname__, where=frames(error))
                await asyncio.sleep(self._settings.heartbeat_seconds)
            await asyncio.sleep(self._settings.sweep_seconds)

    async def run_once(self) -> list[Rescued]:
        """Looks once and takes back what is due; the jobs that moved. Raises `DatabaseAway`."""
        async with self._one_look:
            try:
                connection = await self._session()
                rescued = await self._rescue(connection, self._suspects(await observed(connection)))
                return rescued + await self._overdue(connection)
            except DatabaseAway:
                self._forget()
                raise

    async def close(self) -> None:
        """Ends the session."""
        self._forget()

    async def _session(self) -> Session:
        if self._connection is None or self._connection.is_closed():
            self._forget()
            self._connection = await connect(self._settings, "rescuer")
        return self._connection

    def _forget(self) -> None:
        self._sights.clear()
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    def _suspects(self, fleet: Sequence[Observed]) -> list[Suspect]:
        now = self._clock()
        self._sights = {seen.id: self._sight(seen, now) for seen in fleet if seen.id != self._me}
        suspects: list[Suspect] = []
        for seen in fleet:
            sight = self._sights.get(seen.id)
            if sight is None:
                continue
            silent = now - sight.since
            if seen.gone or silent >= self._settings.lease_seconds:
                suspects.append(Suspect(seen.id, seen.heartbeat_at, need_lock=False))
            elif silent >= self._settings.suspect_seconds and now - sight.tried_at >= self._settings.heartbeat_seconds:
                sight.tried_at = now
                suspects.append(Suspect(seen.id, seen.heartbeat_at, need_lock=True))
        return suspects

    def _sight(self, seen: Observed, now: float) -> _Sight:
        known = self._sights.get(seen.id)
        if known is not None and known.heartbeat_at == seen.heartbeat_at:
            return known
        return _Sight(seen.heartbeat_at, since=now, tried_at=0.0)

    async def _rescue(self, connection: Session, suspects: Sequence[Suspect]) -> list[Rescued]:
        if not suspects:
            return []
        reach(Point.RESCUE_SEEN)
        rescued = await rescue(connection, self._settings, suspects, self._me)
        if rescued:
            reach(Point.RESCUE_MOVED)
        for job in rescued:
            log.warning("rescued", job=str(job.job_id), queue=job.queue, dead=job.dead)
        return rescued

    async def _overdue(self, connection: Session) -> list[Rescued]:
        began = self._clock()
        if began < self._overdue_at:
            return []
        overdue = await rescue_overdue(connection, self._settings)
        ended = self._clock()
        self._overdue_at = ended + max(OVERDUE_SECONDS, AT_MOST_A_HUNDREDTH * (ended - began))
        for job in overdue:
            log.warning("took_overdue_attempt", job=str(job.job_id), queue=job.queue, dead=job.dead)
        return overdue
