"""The doorbell after commits, rung at most once at a time: a ring that is lost costs a poll, never a job."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from app.store.database import Database
from app.usecases.awaken import awaken


class Waker:
    """Tells relay and workers which queues have work due, without making any caller wait."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._queues: set[str] = set()
        self._runner: asyncio.Task[None] | None = None

    def wake(self, queues: Collection[str]) -> None:
        """Rings soon. What comes while a ring is under way goes out with the next."""
        self._queues.update(queues)
        if self._queues and self._runner is None:
            self._runner = asyncio.get_running_loop().create_task(self._run())

    async def drain(self) -> None:
        """Returns once everything asked for so far has been rung."""
        while self._runner is not None:
            await asyncio.wait([self._runner])

    async def _run(self) -> None:
        try:
            while self._queues:
                queues, self._queues = self._queues, set()
                await awaken(self._db, queues)
        finally:
            self._runner = None
