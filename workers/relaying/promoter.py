"""Moves what time moves: deferred rows become due, jobs past their deadline become dead letters."""

from __future__ import annotations

from collections.abc import Callable, Collection

from app.store.relay import OutboxUpkeep
from app.telemetry import log

BATCH_MAX = 1_000


class Promoter:
    """`on_due` is told the queues that rows came into."""

    def __init__(self, upkeep: OutboxUpkeep, on_due: Callable[[Collection[str]], None]) -> None:
        self._upkeep = upkeep
        self._on_due = on_due

    async def run_once(self) -> int:
        """Moves all that is due now; how many rows. Raises `DatabaseAway`."""
        return await self._promote() + await self._expire()

    async def _promote(self) -> int:
        promoted = 0
        while True:
            queues = await self._upkeep.promote_due(BATCH_MAX)
            if queues:
                self._on_due(queues.keys())
            promoted += queues.total()
            if queues.total() < BATCH_MAX:
                return promoted

    async def _expire(self) -> int:
        expired = 0
        while True:
            count = await self._upkeep.expire(BATCH_MAX)
            expired += count
            if count < BATCH_MAX:
                break
        if expired:
            log.info("jobs_expired", jobs=expired)
        return expired
