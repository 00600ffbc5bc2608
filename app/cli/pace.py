"""At most so many jobs a second, however fast the database is."""

from __future__ import annotations

import asyncio
import math

from app.usecases.selection import BATCH_MAX

BATCHES_PER_SECOND = 5


class Pace:
    """Spreads batches over time. `rate` is in jobs a second; None does not wait."""

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._next_at = asyncio.get_running_loop().time()

    @property
    def batch_max(self) -> int:
        """Batches so small that a second holds several."""
        return BATCH_MAX if self._rate is None else min(BATCH_MAX, math.ceil(self._rate / BATCHES_PER_SECOND))

    async def before(self, jobs: int) -> None:
        """Waits until `jobs` more may go."""
        if self._rate is None:
            return
        now = asyncio.get_running_loop().time()
        await asyncio.sleep(max(0.0, self._next_at - now))
        self._next_at = max(self._next_at, now) + jobs / self._rate
