"""One worker process: it enters the fleet, runs jobs, drains and leaves."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

from app.domain.errors import DatabaseAway
from app.settings import Settings
from app.store import kinds
from app.store.database import Database
from app.store.doorbell import Doorbell
from app.store.effects import Effects
from app.store.fleet import Fleet, Incarnation, beat
from app.store.leases import Leases
from app.telemetry import frames, log, report_task_failure
from app.transport.base import Subscriber
from app.transport.connect import subscriber
from workers.consumer import Consumer
from workers.direct import DirectIntake
from workers.executor import Executor
from workers.exits import EXIT_DRAINED, EXIT_FAILED, EXIT_RELEASED_LATE, WRITE_SECONDS
from workers.finisher import Finisher
from workers.guarding.ending import end
from workers.guarding.loop_watch import LoopWatch
from workers.guarding.stop_signals import StopSignals
from workers.heart import Answer, Heart
from workers.intake import Intake
from workers.last_starts import LastStarts
from workers.orders import Orders
from workers.reclaimer import Reclaimer
from workers.registry import Registry
from workers.runs import Runs

SUMMARY_SECONDS = 10.0
AGAIN_SECONDS = 0.2


class Worker:
    """The parts of one worker process and the story of its life.

    `transactions` is the pool for those of handlers; both pools are closed at the end.
    """

    def __init__(
        self, settings: Settings, registry: Registry, orders: Orders, db: Database, transactions: Database
    ) -> None:
        self._settings = settings
        self._orders = orders
        self._registry = registry
        self._db = db
        self._transactions = transactions
        slots = settings.worker_concurrency if orders.last_start is None else 1
        me = Incarnation(
            orders.worker_id, orders.role, settings.queue_names, registry.names(), slots, settings.transport
        )
        self._subscriber = self._open_subscriber(orders.worker_id)
        leases = Leases(db, settings, orders.worker_id, registry.names())
        executor = Executor(settings, Effects(db, settings, transactions), random=random.random)
        self._runs = Runs(slots, lambda: executor.stragglers)
        self._loop_watch = LoopWatch(executor.owner_of)
        self._signals = StopSignals(self.stop, self.hurry)
        self._heart = Heart(settings, me, self._on_answer, self._loop_watch, self._runs.jobs)
        self._finisher = Finisher(leases, self._runs, self._subscriber)
        self._intake = Intake(leases, registry, executor, self._runs, self._finisher, self._heart)
        self._last_starts = LastStarts(
            Fleet(db), orders.worker_id, self._intake, self._runs, lambda: executor.stragglers
        )
        self._stopping = asyncio.Event()
        self._hurrying = asyncio.Event()
        self._background: set[asyncio.Task[None]] = set()
        self._failed = False

    async def run(self) -> int:
        """From entering to leaving; the exit code."""
        asyncio.get_running_loop().set_exception_handler(report_task_failure)
        self._signals.obey()
        working = self._watched(self._work())
        await self._stopping.wait()
        self._heart.draining = True
        await end([working])
        drained = await self._drain()
        await self._leave()
        if self._failed:
            return EXIT_FAILED
        return EXIT_DRAINED if drained else EXIT_RELEASED_LATE

    def stop(self) -> None:
        """Takes no more jobs and lets those that run finish."""
        self._stopping.set()

    def hurry(self) -> None:
        """Gives back at once what still runs."""
        self._stopping.set()
        self._hurrying.set()

    async def _work(self) -> None:
        await self._enter()
        intake = self._start_intake()
        try:
            await asyncio.gather(*intake)
        finally:
            await end(intake)

    async def _enter(self) -> None:
        while True:
            try:
                await kinds.publish(self._db, self._registry.published())
                break
            except DatabaseAway as error:
                log.warning("kinds_not_published_yet", error=str(error))
                await asyncio.sleep(AGAIN_SECONDS)
        self._heart.start()
        for loop in (
            self._finisher.run(),
            self._finisher.run_acknowledging(),
            self._watch_silence(),
            self._summarise(),
        ):
            self._background.add(self._watched(loop))
        await self._heart.next_answer()
        log.info("worker_entered", kinds=self._registry.names(), queues=self._settings.queue_names)

    def _watched(self, loop: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A loop that nothing else would miss: when it fails the process stops, and another takes its place."""
        task = asyncio.create_task(loop)
        task.add_done_callback(self._on_end)
        return task

    def _on_end(self, task: asyncio.Task[None]) -> None:
        # Cancelled by ourselves once we stop; before, by a handler that cancels all the tasks it can find.
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None and not (task.cancelled() and self._stopping.is_set()):
            log.error("loop_failed", error_type=type(error).__qualname__, where=frames(error))
            self._failed = True
            self.stop()

    def _start_intake(self) -> list[asyncio.Task[None]]:
        if self._orders.last_start is not None:
            return [asyncio.create_task(self._last_start(self._orders.last_start))]
        doorbell = Doorbell(self._settings, "worker")
        consumer = None
        loops = [doorbell.run()]
        if self._subscriber is not None:
            consumer = Consumer(self._settings, self._subscriber, self._intake, self._runs, self._heart)
            loops += [consumer.run(), Reclaimer(self._settings, self._subscriber, self._intake, self._runs).run()]
        direct = DirectIntake(
            self._settings,
            self._db,
            self._intake,
            doorbell,
            self._registry.names(),
            broker_ok=lambda: consumer is not None and consumer.broker_ok,
        )
        return [asyncio.create_task(loop) for loop in (*loops, direct.run())]

    async def _last_start(self, job_id: UUID) -> None:
        await self._last_starts.run(job_id)
        self._stopping.set()

    async def _drain(self) -> bool:
        """Lets running jobs finish while heartbeats go on, then gives the rest back; whether all of it was written."""
        idle = asyncio.create_task(self._runs.until_idle())
        hurry = asyncio.create_task(self._hurrying.wait())
        grace = self._settings.shutdown_seconds
        await asyncio.wait((idle, hurry), timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if not idle.done():
            self._give_back()
            await asyncio.wait((idle,), timeout=WRITE_SECONDS)
        idle.cancel()
        await asyncio.wait((asyncio.create_task(self._give_back_unexplained()),), timeout=WRITE_SECONDS)
        await self._finisher.acknowledge_once()
        return not len(self._runs)

    async def _give_back_unexplained(self) -> None:
        """A claim cut off by the stop may have brought leases: left to a rescue, each would be charged a crash."""
        try:
            async with self._db.session() as connection:
                last = await beat(connection, self._orders.worker_id, broker_ok=self._heart.broker_ok, draining=True)
        except DatabaseAway as error:
            log.warning("last_look_failed", error=str(error))
            return
        running = {run.attempt for run in self._runs}
        await self._finisher.release(sorted(last.leases - running), "shutdown")

    def _give_back(self) -> None:
        for run in self._runs:
            run.releasing = True
            run.cancel()

    async def _leave(self) -> None:
        try:
            await Fleet(self._db).leave(self._orders.worker_id, "drained" if not len(self._runs) else "stopped")
        except DatabaseAway as error:
            log.warning("left_without_saying", error=str(error))
        await end(list(self._background))
        await self._heart.stop()
        if self._subscriber is not None:
            await self._subscriber.close()
        await self._transactions.close()
        await self._db.close()
        log.info("worker_left", started=self._intake.started, written=self._finisher.written)

    def _on_answer(self, answer: Answer) -> None:
        self._signals.keep()
        if not answer.beat.known:
            log.error("left_by_others")
            self.stop()
        orphans = self._runs.judge(answer)
        if orphans:
            log.warning("leases_unexplained", count=len(orphans))
            task = asyncio.create_task(self._finisher.release(orphans, "a claim whose reply was lost"))
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    async def _watch_silence(self) -> None:
        """Past a lease without an answered heartbeat nobody may trust us, and others run what we ran."""
        while True:
            await asyncio.sleep(self._settings.heartbeat_seconds)
            if self._heart.silent_seconds() > self._settings.lease_seconds:
                for run in self._runs:
                    if not run.lost:
                        run.lose()

    async def _summarise(self) -> None:
        before = 0
        while True:
            await asyncio.sleep(SUMMARY_SECONDS)
            if self._intake.started != before or len(self._runs):
                log.info(
                    "summary",
                    started=self._intake.started - before,
                    running=self._runs.running,
                    written=self._finisher.written,
                    fenced=self._finisher.fenced,
                    loop_blocked=self._loop_watch.episodes,
                )
            before = self._intake.started

    def _open_subscriber(self, worker_id: UUID) -> Subscriber | None:
        if self._settings.transport == "pg" or self._orders.last_start is not None:
            return None
        return subscriber(self._settings, worker_id, self._settings.queue_names)
