"""Keeps the broker's pending list in step: renews what runs here, takes over what idles anywhere.

An entry only leads to a job: what becomes of it a claim in PostgreSQL decides. Job still in the outbox: claimed and
run. Job leased by someone, finished or gone: the entry is acknowledged away, because whoever takes a job back from a
lost worker puts it into the outbox under a new attempt number, and that is published anew.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from app.domain.errors import BrokerAway
from app.settings import Settings
from app.telemetry import log
from app.transport.base import Subscriber
from workers.intake import Intake
from workers.runs import Runs

RECLAIM_MAX = 100


class Reclaimer:
    """One sweep every `SWEEP_SECONDS`; entries count as idle after `LEASE_SECONDS`."""

    def __init__(
        self,
        settings: Settings,
        subscriber: Subscriber,
        intake: Intake,
        runs: Runs,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._subscriber = subscriber
        self._intake = intake
        self._runs = runs
        self._clock = clock
        self._renewed_at = clock()

    async def run(self) -> None:
        """Sweeps until cancelled."""
        while True:
            try:
                await self.run_once()
            except BrokerAway as error:
                log.debug("not_reclaimed", error=str(error))
            await asyncio.sleep(self._settings.sweep_seconds)

    async def run_once(self) -> int:
        """Renews when it is time and takes over idle entries; how many. Raises `BrokerAway`."""
        await self._renew()
        count = min(self._runs.free() - self._intake.in_hand, RECLAIM_MAX)
        if count <= 0:
            return 0
        reclaimed = await self._subscriber.reclaim(count, self._settings.lease_seconds)
        if reclaimed:
            log.info("reclaimed", entries=len(reclaimed))
            self._intake.receive(reclaimed)
            await self._intake.claim_received()
        return len(reclaimed)

    async def _renew(self) -> None:
        if self._clock() - self._renewed_at < self._settings.lease_seconds / 3:
            return
        self._renewed_at = self._clock()
        await self._subscriber.renew([run.delivery for run in self._runs if run.delivery is not None])
