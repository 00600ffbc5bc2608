"""The attempts this process runs, and what the heartbeat's answer says of them.

The answer is the truth. A run that was asked for and is not in it has been taken away and is cancelled. In one to all
that is held, a lease that nothing here runs and no open claim explains is given back. Only what was so before the
heartbeat was sent is judged by it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from uuid import UUID

from app.domain.errors import DatabaseAway, LeaseLost
from app.domain.leased import LeasedJob
from app.telemetry import log
from app.transport.base import Delivery
from workers.attempt import Attempt
from workers.heart import Answer, Heart

Fence = tuple[UUID, int]


class Run:
    """One attempt in this process: `workers.handling.run_lease.RunLease`."""

    __slots__ = ("_heart", "_show", "delivery", "ending", "job", "lost", "releasing", "since", "work")

    def __init__(
        self,
        job: LeasedJob,
        delivery: Delivery | None,
        heart: Heart,
        show: Callable[[UUID, int, str], Awaitable[None]],
    ) -> None:
        self.job = job
        self.delivery = delivery
        self.lost = False
        self.releasing = False
        self.ending = False
        self.since = time.monotonic()
        self.work: Attempt | None = None
        self._heart = heart
        self._show = show

    @property
    def attempt(self) -> Fence:
        return self.job.id, self.job.attempt

    async def may_call(self) -> None:
        """Returns once a heartbeat is fresh enough for an outside call to begin. Raises `LeaseLost`."""
        while not self.lost:
            if self._heart.fresh():
                return
            await self._heart.next_answer()
        raise LeaseLost("the lease of this attempt is gone")

    def may_call_now(self) -> bool:
        """Whether an outside call may begin this instant; may be asked from any thread."""
        return not self.lost and self._heart.fresh()

    async def progress(self, json_text: str) -> None:
        """Shows progress while the attempt runs; best effort."""
        with suppress(DatabaseAway):
            await self._show(self.job.id, self.job.attempt, json_text)

    def lose(self) -> None:
        """The job is no longer ours: the handler is cancelled, and nothing it does is written."""
        self.lost = True
        self.cancel()

    def cancel(self) -> None:
        """Ends the attempt, as told by `lost` or `releasing`."""
        if self.work is not None:
            self.work.interrupt()


class Runs:
    """All attempts of this process, from the claim to the answer of the statement that ended them."""

    def __init__(self, concurrency: int, stragglers: Callable[[], int]) -> None:
        self._concurrency = concurrency
        self._stragglers = stragglers
        self._runs: dict[Fence, Run] = {}
        self._ending = 0
        self._claim_count = 0
        self._open_claims: set[int] = set()
        self._unexplained: dict[Fence, int] = {}
        self.changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(list(self._runs.values()))

    def jobs(self) -> list[UUID]:
        """The jobs of all attempts; may be asked from any thread, as a dictionary is copied in one step."""
        return [job_id for job_id, _ in list(self._runs)]

    @property
    def running(self) -> int:
        """Attempts whose handler still runs."""
        return len(self._runs) - self._ending

    def free(self) -> int:
        """Slots to claim for. Code that was given up keeps its slot; so do endings beyond one full set."""
        backlog = max(0, self._ending - self._concurrency)
        return max(0, self._concurrency - self.running - self._stragglers() - backlog)

    async def until_free(self) -> int:
        """Waits for a free slot; how many there are."""
        while not (free := self.free()):
            self.changed.clear()
            try:
                # A straggler's thread ends without telling.
                await asyncio.wait_for(self.changed.wait(), 1.0)
            except TimeoutError:
                continue
        return free

    async def until_idle(self) -> None:
        """Waits until no attempt is left."""
        while self._runs:
            self.changed.clear()
            await self.changed.wait()

    def add(self, run: Run) -> None:
        self._runs[run.attempt] = run

    def end(self, run: Run) -> None:
        """The handler has ended; what it came to is being written."""
        run.ending = True
        self._ending += 1
        self.changed.set()

    def remove(self, run: Run) -> None:
        """What it came to is written, or nothing is to be."""
        run.work = None
        if self._runs.pop(run.attempt, None) is not None:
            self._ending -= run.ending
            self.changed.set()

    @contextmanager
    def claiming(self) -> Iterator[None]:
        """While open, a lease that nothing here runs yet may be this claim's."""
        self._claim_count += 1
        nth = self._claim_count
        self._open_claims.add(nth)
        try:
            yield
        finally:
            self._open_claims.discard(nth)

    def judge(self, answer: Answer) -> list[Fence]:
        """Cancels runs that were taken away; the leases in my name that nothing explains, to be given back."""
        told, of = answer.beat.leases, answer.beat.of
        for run in self:
            asked = of is None or run.job.id in of
            if asked and run.attempt not in told and run.since < answer.sent_at and not run.ending:
                log.warning("lease_lost", job=str(run.job.id), attempt=run.job.attempt)
                run.lose()
        if of is not None:
            return []
        oldest_open = min(self._open_claims, default=self._claim_count + 1)
        orphans: list[Fence] = []
        suspicion: dict[Fence, int] = {}
        for attempt in told - self._runs.keys():
            # Claims begun before this answer may be its cause; once they are all answered, nothing is.
            begun = self._unexplained.get(attempt, self._claim_count)
            suspicion[attempt] = begun
            if attempt in self._unexplained and oldest_open > begun:
                orphans.append(attempt)
        self._unexplained = suspicion
        return orphans
