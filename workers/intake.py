"""How jobs come into this process: claims for free slots only, and every claimed job started at once.

Broker and PostgreSQL are two ways to the same claim. One claim at a time counts the free slots and fills them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from uuid import UUID

from app.domain.errors import DatabaseAway
from app.domain.leased import LeasedJob
from app.failpoints import Point, reach
from app.store.leases import Claimed, Leases
from app.telemetry import log
from app.transport.base import Delivery
from workers.executor import Executor
from workers.finisher import Finisher
from workers.heart import Heart
from workers.registry import Registry
from workers.runs import Run, Runs


class Intake:
    """Claims and starts. `started` counts the attempts begun."""

    def __init__(
        self, leases: Leases, registry: Registry, executor: Executor, runs: Runs, finisher: Finisher, heart: Heart
    ) -> None:
        self.started = 0
        self._leases = leases
        self._registry = registry
        self._executor = executor
        self._runs = runs
        self._finisher = finisher
        self._heart = heart
        self._one_claim = asyncio.Lock()
        self._in_hand: deque[Delivery] = deque()

    @property
    def in_hand(self) -> int:
        """Deliveries that wait for a slot or for the database."""
        return len(self._in_hand)

    def receive(self, deliveries: Sequence[Delivery]) -> None:
        """Takes deliveries over; `claim_received` claims them."""
        self._in_hand.extend(deliveries)

    async def claim_received(self) -> int:
        """Claims what was received, as far as slots are free; how many started.

        What the claim does not give is a duplicate, stale, or not for us: its entry is acknowledged away.
        """
        async with self._one_claim:
            batch = [self._in_hand.popleft() for _ in range(min(self._runs.free(), len(self._in_hand)))]
            if not batch:
                return 0
            reach(Point.CLAIM_DELIVERED)
            first = {delivery.job_id: delivery for delivery in reversed(batch)}
            claimed = await self._claim(lambda: self._leases.claim(list(first)))
            if claimed is None:
                self._in_hand.extendleft(reversed(batch))
                return 0
            for job in claimed.jobs:
                self._start(job, first.pop(job.id))
        running = {run.delivery.receipt for run in self._runs if run.delivery is not None}
        self._finisher.acknowledge([delivery for delivery in batch if delivery.receipt not in running])
        return len(claimed.jobs)

    async def claim_due(self, queue: str, kinds: Sequence[str], *, overdue_seconds: float = 0.0) -> int:
        """Claims straight from the outbox for every free slot; how many started."""
        async with self._one_claim:
            free = self._runs.free() - len(self._in_hand)
            if free <= 0:
                return 0
            claimed = await self._claim(
                lambda: self._leases.claim_due(queue, free, kinds=kinds, overdue_seconds=overdue_seconds)
            )
            return self._start_all(claimed)

    async def claim_last_start(self, job_id: UUID) -> int:
        """Claims one job for its last start, alone in this process; 1 when it started."""
        async with self._one_claim:
            return self._start_all(await self._claim(lambda: self._leases.claim([job_id], solo=True)))

    async def _claim(self, claim: Callable[[], Awaitable[Claimed]]) -> Claimed | None:
        """What the claim brought. None: it cannot be had now, and a fresh heartbeat has been waited for."""
        if self._heart.fresh():
            try:
                with self._runs.claiming():
                    claimed = await claim()
                if claimed.jobs:
                    reach(Point.CLAIM_COMMITTED)
                if claimed.fresh:
                    return claimed
            except DatabaseAway as error:
                log.warning("not_claimed", error=str(error))
                self._heart.doubt()
        await self._heart.next_answer()
        return None

    def _start_all(self, claimed: Claimed | None) -> int:
        if claimed is None:
            return 0
        for job in claimed.jobs:
            self._start(job, None)
        return len(claimed.jobs)

    def _start(self, job: LeasedJob, delivery: Delivery | None) -> None:
        task = self._registry.get(job.kind)
        assert task is not None, "a claim takes only kinds of the registry"
        run = Run(job, delivery, self._heart, self._leases.progress_if_leased)
        self._runs.add(run)
        self.started += 1
        run.work = self._executor.begin(task, run, partial(self._finisher.put, run))
