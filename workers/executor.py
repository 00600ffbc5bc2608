"""Runs the attempts of a process and says what becomes of their jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from app.domain.decide import Budget, Ending, decide
from app.domain.leased import LeasedJob
from app.domain.outcomes import Outcome
from app.settings import Settings
from workers.attempt import Attempt, Means
from workers.handling.calling import Caller
from workers.handling.ledger import Ledger
from workers.handling.run_lease import RunLease
from workers.handling.threads import Threads
from workers.registry import Task

# How long a cancelled handler may take to clean up; less than the grace after which others take its job.
CLEAN_UP_SECONDS = 1.0


class Executor:
    """Runs handlers, one per process.

    `random` gives numbers in [0, 1) for the jitter of retries.
    """

    def __init__(
        self,
        settings: Settings,
        ledger: Ledger,
        *,
        random: Callable[[], float],
        caller: Callable[[Threads], Caller] = Caller,
    ) -> None:
        self._random = random
        self._budget = Budget(settings.backoff_base_seconds, settings.backoff_cap_seconds, settings.max_releases)
        # Two pools: a thread of a handler that waits for an effect must not hold the thread its effect needs.
        self._handler_threads = Threads(settings.worker_concurrency)
        self._effect_threads = Threads(settings.worker_concurrency)
        self._means = Means(
            ledger=ledger,
            handlers=Caller(self._handler_threads),
            effects=caller(self._effect_threads),
            result_bytes_max=settings.max_result_bytes,
            effect_bytes_max=settings.max_effect_bytes,
            clean_up_seconds=min(CLEAN_UP_SECONDS, settings.suspect_seconds / 2),
        )
        self._at_work: dict[asyncio.Task[Ending], Attempt] = {}
        self._adrift: set[asyncio.Task[Ending]] = set()

    @property
    def stragglers(self) -> int:
        """Runs that were given up but whose code still runs. Each keeps the slot of its job until it ends."""
        return len(self._adrift) + self._handler_threads.stragglers + self._effect_threads.stragglers

    def owner_of(self, task: asyncio.Task[Any]) -> tuple[LeasedJob, str] | None:
        """The job that a task works for, as its handler or within one of its effects, and its kind. From any thread."""
        for handler, attempt in list(self._at_work.items()):
            if task is handler or attempt.effects.runs_in(task):
                return attempt.lease.job, attempt.task.name
        return None

    def begin(self, task: Task, lease: RunLease, on_end: Callable[[Outcome], None]) -> Attempt:
        """Runs `lease.job` with `task`. `on_end` is told once, on the loop, what becomes of the job.

        Whoever keeps the lease ends the attempt from outside with `Attempt.interrupt`.
        """

        def ended(ending: Ending) -> None:
            if not attempt.handler.done():
                self._adrift.add(attempt.handler)
                attempt.handler.add_done_callback(self._adrift.discard)
            on_end(decide(ending, lease.job, self._budget, self._random()))

        attempt = Attempt(task, lease, self._means, ended)
        self._at_work[attempt.handler] = attempt
        attempt.handler.add_done_callback(self._at_work.pop)
        return attempt
