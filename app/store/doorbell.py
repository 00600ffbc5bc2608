"""Rings when something became due in the outbox. A ring may be missed; whoever waits also looks now and then."""

from __future__ import annotations

import asyncio

from app.domain.errors import DatabaseAway
from app.settings import Settings
from app.store.database import away_named, connect

CHANNEL = "outlast_outbox"
RECONNECT_SECONDS = 1.0


class Doorbell:
    """A listening session of its own that mends itself."""

    def __init__(self, settings: Settings, role: str) -> None:
        self._settings = settings
        self._role = role
        self._rung = asyncio.Event()
        self._broken = asyncio.Event()

    async def wait(self, at_most_seconds: float) -> bool:
        """Returns on a ring, or False after `at_most_seconds`."""
        try:
            await asyncio.wait_for(self._rung.wait(), at_most_seconds)
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    def ring(self) -> None:
        """Rings from inside this process."""
        self._rung.set()

    async def run(self) -> None:
        """Listens until cancelled."""
        while True:
            try:
                await self._listen()
            except DatabaseAway:
                await asyncio.sleep(RECONNECT_SECONDS)

    async def _listen(self) -> None:
        connection = await connect(self._settings, f"{self._role} doorbell")
        try:
            self._broken.clear()
            connection.add_termination_listener(lambda _connection: self._broken.set())
            async with away_named():
                await connection.add_listener(CHANNEL, self._on_ring)
            self._rung.set()
            await self._broken.wait()
        finally:
            connection.terminate()
        raise DatabaseAway("the listening session ended")

    def _on_ring(self, *_: object) -> None:
        self._rung.set()
