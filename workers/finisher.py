"""Writes how attempts ended: what waits goes out together, and nothing waits for more.

Our own storage trouble is not the job's failure: a statement that got no answer is sent again until it has one. All
of them are fenced by `(job_id, attempt)`, so sending twice is safe. Only after its answer is the entry acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar, assert_never
from uuid import UUID

from app.domain.errors import BrokerAway, DatabaseAway, Unstorable
from app.domain.outcomes import Bury, Done, Failure, Gone, Outcome, Release, Retry
from app.domain.states import Reason
from app.failpoints import Point, reach
from app.store.leases import Ended, Leases
from app.telemetry import frames, log
from app.transport.base import Delivery, Subscriber
from workers.runs import Run, Runs

AGAIN_SECONDS_MIN = 0.02
AGAIN_SECONDS_MAX = 0.5
FLUSH_MAX = 500

OutcomeT = TypeVar("OutcomeT", Done, Retry, Bury, Release)
Write = Callable[[Sequence[Ended[OutcomeT]]], Awaitable[set[UUID]]]


class Finisher:
    """Takes ended attempts and gets them into PostgreSQL. `fenced` counts those that were no longer ours."""

    def __init__(self, leases: Leases, runs: Runs, subscriber: Subscriber | None) -> None:
        self.fenced = 0
        self.written = 0
        self._leases = leases
        self._runs = runs
        self._subscriber = subscriber
        self._ended: list[tuple[Run, Outcome]] = []
        self._handled: list[Delivery] = []
        self._some_ended = asyncio.Event()
        self._some_handled = asyncio.Event()

    def put(self, run: Run, outcome: Outcome) -> None:
        """Takes over an attempt whose handler has ended."""
        self._runs.end(run)
        self._ended.append((run, outcome))
        self._some_ended.set()

    def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        """Takes over entries that nobody needs any more."""
        self._handled.extend(deliveries)
        self._some_handled.set()

    async def run(self) -> None:
        """Writes until cancelled."""
        while True:
            await self._some_ended.wait()
            await self.run_once()

    async def run_once(self) -> int:
        """Writes what waits; how many attempts that were."""
        batch, self._ended = self._ended[:FLUSH_MAX], self._ended[FLUSH_MAX:]
        if not self._ended:
            self._some_ended.clear()
        try:
            await self._write_all(batch)
            reach(Point.FINISH_COMMITTED)
        except Exception as error:
            # A fault of ours, not of these jobs nor of their neighbours. What is still leased to us, and run by nobody
            # here, the next heartbeats show: it goes back uncharged, and the cap on releases keeps it from looping.
            log.error("finisher_failed", attempts=len(batch), error_type=type(error).__qualname__, where=frames(error))
        self.acknowledge([run.delivery for run, _ in batch if run.delivery is not None])
        for run, _ in batch:
            self._runs.remove(run)
        return len(batch)

    async def run_acknowledging(self) -> None:
        """Acknowledges until cancelled, beside the writing."""
        while True:
            await self._some_handled.wait()
            await self.acknowledge_once()

    async def acknowledge_once(self) -> int:
        """Removes handled entries from the broker; how many. Those it loses track of go idle and come back."""
        batch, self._handled = self._handled, []
        self._some_handled.clear()
        if self._subscriber is not None and batch:
            try:
                await self._subscriber.acknowledge(batch)
                reach(Point.ACK_DONE)
            except BrokerAway as error:
                log.warning("not_acknowledged", entries=len(batch), error=str(error))
        return len(batch)

    async def _write_all(self, batch: Sequence[tuple[Run, Outcome]]) -> None:
        done: list[Ended[Done]] = []
        retry: list[Ended[Retry]] = []
        bury: list[Ended[Bury]] = []
        release: list[Ended[Release]] = []
        for run, outcome in batch:
            match outcome:
                case Done():
                    done.append(Ended(run.job.id, run.job.attempt, outcome))
                case Retry():
                    retry.append(Ended(run.job.id, run.job.attempt, outcome))
                case Bury():
                    bury.append(Ended(run.job.id, run.job.attempt, outcome))
                case Release():
                    release.append(Ended(run.job.id, run.job.attempt, outcome))
                case Gone():
                    self._fence(run.job.id, run.job.attempt)
                case _:
                    assert_never(outcome)
        await self._write(done, self._leases.finish_if_leased)
        await self._write(retry, self._leases.retry_if_leased)
        await self._write(bury, self._leases.bury_if_leased)
        await self._write(release, self._leases.release_if_leased)

    async def release(self, attempts: Sequence[tuple[UUID, int]], cause: str) -> None:
        """Gives back leases in our name that nothing here runs."""
        orphans = [Ended(job_id, attempt, Release(cause)) for job_id, attempt in attempts]
        await self._write(orphans, self._leases.release_if_leased)

    async def _write(self, ended: Sequence[Ended[OutcomeT]], write: Write[OutcomeT]) -> None:
        if not ended:
            return
        sent_before, pause = False, AGAIN_SECONDS_MIN
        while True:
            try:
                moved = await write(ended)
                break
            except DatabaseAway as error:
                log.warning("not_written_yet", attempts=len(ended), error=str(error))
                sent_before = True
                await asyncio.sleep(pause)
                pause = min(AGAIN_SECONDS_MAX, 2 * pause)
            except Unstorable as error:
                await self._write_singly(ended, write, error)
                return
        await self._count(ended, moved, sent_before=sent_before)

    async def _write_singly(self, ended: Sequence[Ended[OutcomeT]], write: Write[OutcomeT], error: Unstorable) -> None:
        if len(ended) > 1:
            for one in ended:
                await self._write([one], write)
            return
        one = ended[0]
        log.error("unstorable", job=str(one.job_id), attempt=one.attempt, error_type=type(one.outcome).__name__)
        if isinstance(one.outcome, Done):
            failure = Failure("Unstorable", str(error), "unstorable")
            buried = Ended(one.job_id, one.attempt, Bury(Reason.INVALID_OUTPUT, failure))
            await self._write([buried], self._leases.bury_if_leased)

    async def _count(self, ended: Sequence[Ended[OutcomeT]], moved: set[UUID], *, sent_before: bool) -> None:
        left = [(one.job_id, one.attempt) for one in ended if one.job_id not in moved]
        if left and sent_before:
            mine = await self._ended_by_me(left)
            left = [attempt for attempt in left if attempt[0] not in mine]
        self.written += len(ended) - len(left)
        for job_id, attempt in left:
            self._fence(job_id, attempt)

    def _fence(self, job_id: UUID, attempt: int) -> None:
        self.fenced += 1
        log.warning("fenced", job=str(job_id), attempt=attempt)

    async def _ended_by_me(self, attempts: Sequence[tuple[UUID, int]]) -> set[UUID]:
        try:
            return await self._leases.ended_by_attempt(attempts)
        except DatabaseAway:
            return set()
