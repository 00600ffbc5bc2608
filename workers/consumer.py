"""Takes jobs from the broker, as many as slots are free."""

from __future__ import annotations

import asyncio

from app.domain.errors import BrokerAway
from app.settings import Settings
from app.telemetry import log
from app.transport.base import Subscriber
from workers.heart import Heart
from workers.intake import Intake
from workers.runs import Runs

READ_MAX = 128  # with as many slots again, one half is claimed while the other runs
AGAIN_SECONDS = 0.5


class Consumer:
    """Reads the streams of this worker's queues. `broker_ok` is false while the broker is away."""

    def __init__(self, settings: Settings, subscriber: Subscriber, intake: Intake, runs: Runs, heart: Heart) -> None:
        self.broker_ok = True
        self._block_seconds = settings.block_seconds
        self._subscriber = subscriber
        self._intake = intake
        self._runs = runs
        self._heart = heart

    async def run(self) -> None:
        """Reads and claims until cancelled."""
        while True:
            await self.run_once()

    async def run_once(self) -> int:
        """Reads once for the slots that are free and claims what came; how many jobs started."""
        free = await self._runs.until_free()
        if not self._intake.in_hand:
            await self._read(min(free, READ_MAX))
        return await self._intake.claim_received()

    async def _read(self, count: int) -> None:
        try:
            self._intake.receive(await self._subscriber.read(count, self._block_seconds))
            self._see(broker_ok=True)
        except BrokerAway as error:
            if self.broker_ok:
                log.warning("broker_away", error=str(error))
            self._see(broker_ok=False)
            await asyncio.sleep(AGAIN_SECONDS)

    def _see(self, *, broker_ok: bool) -> None:
        if broker_ok and not self.broker_ok:
            log.info("broker_back")
        self.broker_ok = broker_ok
        self._heart.broker_ok = broker_ok
