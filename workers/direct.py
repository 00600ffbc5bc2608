"""Takes jobs straight from PostgreSQL: without a broker, while it is away, and for kinds the relay does not publish.

Beside that, whatever has been due for longer than two republish intervals is taken by any free worker of its kind,
broker or not: nothing waits for ever for an entry that went astray.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from app.domain.errors import DatabaseAway
from app.settings import Settings
from app.store.database import Database
from app.store.doorbell import Doorbell
from app.store.fleet import Fleet, Live
from app.store.relay import OutboxUpkeep
from app.telemetry import log
from workers.intake import Intake
from workers.surroundings import claim_directly

BUSY_SECONDS = 1.0
BUSY_POLL_SECONDS = 0.005
LOOK_SECONDS = 0.5
OVERDUE_SWEEP_SECONDS = 1.0
AT_MOST_A_HUNDREDTH = 100
PROMOTE_SECONDS = 0.1
PROMOTE_MAX = 1_000


class DirectIntake:
    """Polls the outbox when it has a reason to, woken by the doorbell."""

    def __init__(
        self,
        settings: Settings,
        db: Database,
        intake: Intake,
        doorbell: Doorbell,
        kinds: Sequence[str],
        *,
        broker_ok: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._fleet = Fleet(db)
        self._upkeep = OutboxUpkeep(db)
        self._intake = intake
        self._doorbell = doorbell
        self._kinds = list(kinds)
        self._broker_ok = broker_ok
        self._clock = clock
        self._seen: list[Live] = []
        self._looked_at = float("-inf")
        self._moved_at = float("-inf")
        self._promoted_at = float("-inf")
        self._overdue_at = float("-inf")

    async def run(self) -> None:
        """Claims until cancelled."""
        while True:
            try:
                started = await self.run_once()
            except DatabaseAway as error:
                log.warning("outbox_not_seen", error=str(error))
                started = 0
            if not started:
                busy = self._clock() - self._moved_at < BUSY_SECONDS
                await self._doorbell.wait(BUSY_POLL_SECONDS if busy else self._settings.sweep_seconds)

    async def run_once(self) -> int:
        """Claims once what is to be claimed directly; how many jobs started. Raises `DatabaseAway`."""
        await self._look()
        started = 0
        for queue in self._settings.queue_names:
            kinds = claim_directly(
                self._seen, queue, self._kinds, broker_ok=self._broker_ok(), transport=self._settings.transport
            )
            if kinds:
                started += await self._claim_due(queue, sorted(kinds))
        if started:
            self._moved_at = self._clock()
        return started + await self._claim_overdue()

    async def _look(self) -> None:
        if self._clock() - self._looked_at >= LOOK_SECONDS:
            self._seen = await self._fleet.live(self._settings.suspect_seconds)
            self._looked_at = self._clock()

    async def _claim_due(self, queue: str, kinds: Sequence[str]) -> int:
        if self._clock() - self._promoted_at >= PROMOTE_SECONDS:
            self._promoted_at = self._clock()
            await self._upkeep.promote_due(PROMOTE_MAX)
        return await self._intake.claim_due(queue, kinds)

    async def _claim_overdue(self) -> int:
        began = self._clock()
        if began < self._overdue_at:
            return 0
        overdue_seconds = 2 * self._settings.republish_seconds
        started = 0
        for queue in self._settings.queue_names:
            started += await self._intake.claim_due(queue, self._kinds, overdue_seconds=overdue_seconds)
        ended = self._clock()
        self._overdue_at = ended + max(OVERDUE_SWEEP_SECONDS, AT_MOST_A_HUNDREDTH * (ended - began))
        return started
