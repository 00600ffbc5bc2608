"""The last starts of jobs, one after the other, each alone in its process.

A process that has run one runs the next, unless the one before has left something behind that could end it: code that
still runs, or memory. A full worker that dies twice puts all its jobs before their last start; a process for each would
cost a second of processor time a job, and everybody else would wait for it.
"""

from __future__ import annotations

import random
import resource
from collections.abc import Callable
from uuid import UUID

from app.domain.errors import DatabaseAway
from app.store.fleet import Fleet
from app.telemetry import log
from workers.intake import Intake
from workers.runs import Runs

CHOICE_MAX = 16
LEFT_BEHIND_KIB = 32 * 1_024


class LastStarts:
    """`stragglers` counts runs that were given up but whose code still runs."""

    def __init__(
        self, fleet: Fleet, worker_id: UUID, intake: Intake, runs: Runs, stragglers: Callable[[], int]
    ) -> None:
        self._fleet = fleet
        self._worker_id = worker_id
        self._intake = intake
        self._runs = runs
        self._stragglers = stragglers
        self._peak_kib = _peak_kib()

    async def run(self, first: UUID) -> None:
        """Runs the job it was ordered for, and then others, until none waits or this process is not as new."""
        job_id: UUID | None = first
        while job_id is not None:
            await self._intake.claim_last_start(job_id)
            await self._runs.until_idle()
            job_id = await self._next()

    async def _next(self) -> UUID | None:
        """One of those that wait first, at random: others choose at the same time."""
        if self._stragglers() or _peak_kib() > self._peak_kib + LEFT_BEHIND_KIB:
            return None
        try:
            waiting = await self._fleet.solo_waiting(self._worker_id, CHOICE_MAX)
        except DatabaseAway as error:
            log.debug("last_starts_not_seen", error=str(error))
            return None
        return random.choice(waiting) if waiting else None


def _peak_kib() -> int:
    """The most memory that this process has had resident (Linux: KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
