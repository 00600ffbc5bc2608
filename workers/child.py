"""One worker process: it enters the fleet, runs jobs, drains and leaves.

`python -m workers.child` is started by `workers.supervisor`, never by hand.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
import time
from uuid import UUID

import uvloop

from app.domain.errors import DatabaseAway, HandlersRefused
from app.settings import Settings
from app.store import kinds
from app.store.database import Database
from app.store.doorbell import Doorbell
from app.store.effects import Effects
from app.store.fleet import Fleet, Incarnation
from app.store.leases import Leases
from app.telemetry import bind_process, configure, log, report_task_failure
from app.transport.base import Subscriber
from app.transport.connect import subscriber
from workers.consumer import Consumer
from workers.direct import DirectIntake
from workers.executor import Executor
from workers.finisher import Finisher
from workers.heart import Answer, Heart
from workers.intake import Intake
from workers.orders import Orders
from workers.reclaimer import Reclaimer
from workers.registry import Registry, load
from workers.runs import Runs

EXIT_DRAINED = 0
EXIT_RELEASED_LATE = 1
EXIT_HANDLERS_REFUSED = 78  # EX_CONFIG of sysexits(3)

WRITE_SECONDS = 5.0
ORPHAN_SECONDS = 3.0
SUMMARY_SECONDS = 10.0
AGAIN_SECONDS = 0.2


class Worker:
    """The parts of one worker process and the story of its life."""

    def __init__(self, settings: Settings, registry: Registry, orders: Orders, db: Database) -> None:
        self._settings = settings
        self._orders = orders
        self._registry = registry
        self._db = db
        slots = settings.worker_concurrency if orders.last_start is None else 1
        me = Incarnation(
            orders.worker_id, orders.role, settings.queue_names, registry.names(), slots, settings.transport
        )
        self._subscriber = self._open_subscriber(orders.worker_id)
        leases = Leases(db, settings, orders.worker_id, registry.names())
        executor = Executor(settings, Effects(db, settings), random=random.random)
        self._runs = Runs(slots, lambda: executor.stragglers)
        self._heart = Heart(settings, me, self._on_answer, on_tick=self._watch_parent)
        self._finisher = Finisher(leases, self._runs, self._subscriber)
        self._intake = Intake(leases, registry, executor, self._runs, self._finisher, self._heart)
        self._stopping = asyncio.Event()
        self._hurrying = asyncio.Event()
        self._background: set[asyncio.Task[None]] = set()
        self._parent = os.getppid()
        self._orphaned_at: float | None = None

    async def run(self) -> int:
        """From entering to leaving; the exit code."""
        self._obey_signals()
        await self._enter()
        intake = self._start_intake()
        await self._stopping.wait()
        self._heart.draining = True
        await _cancel(intake)
        drained = await self._drain()
        await self._leave()
        return EXIT_DRAINED if drained else EXIT_RELEASED_LATE

    def stop(self) -> None:
        """The first call stops taking jobs, the second one gives back what still runs."""
        if self._stopping.is_set():
            self._hurrying.set()
        self._stopping.set()

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
            self._background.add(asyncio.create_task(loop))
        await self._heart.next_answer()
        log.info("worker_entered", kinds=self._registry.names(), queues=self._settings.queue_names)

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
        await self._intake.claim_last_start(job_id)
        await self._runs.until_idle()
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
        await self._finisher.acknowledge_once()
        return not len(self._runs)

    def _give_back(self) -> None:
        for run in self._runs:
            run.releasing.set()
            run.cancel()

    async def _leave(self) -> None:
        try:
            await Fleet(self._db).leave(self._orders.worker_id, "drained" if not len(self._runs) else "stopped")
        except DatabaseAway as error:
            log.warning("left_without_saying", error=str(error))
        await _cancel(list(self._background))
        await asyncio.to_thread(self._heart.stop)
        if self._subscriber is not None:
            await self._subscriber.close()
        await self._db.close()
        log.info("worker_left", started=self._intake.started, written=self._finisher.written)

    def _on_answer(self, answer: Answer) -> None:
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
                    if not run.lost.is_set():
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
                )
            before = self._intake.started

    def _open_subscriber(self, worker_id: UUID) -> Subscriber | None:
        if self._settings.transport == "pg" or self._orders.last_start is not None:
            return None
        return subscriber(self._settings, worker_id, self._settings.queue_names)

    def _obey_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(report_task_failure)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        self._loop = loop

    def _watch_parent(self) -> None:
        """Called by the heartbeat's thread: without a supervisor, give everything back and go, come what may."""
        if os.getppid() == self._parent:
            return
        now = time.monotonic()
        if self._orphaned_at is None:
            self._orphaned_at = now
            for _ in range(2):
                self._loop.call_soon_threadsafe(self.stop)
        elif now - self._orphaned_at > ORPHAN_SECONDS:
            os._exit(EXIT_RELEASED_LATE)


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _work(settings: Settings, registry: Registry, orders: Orders) -> int:
    db = await Database.open(settings, orders.role)
    return await Worker(settings, registry, orders, db).run()


def main() -> int:
    """Loads the handlers, waits for orders, works; the exit code."""
    settings = Settings()
    configure(settings, "worker")
    try:
        registry = load(settings.handler_modules)
        registry.published()
    except HandlersRefused as error:
        log.error("handlers_refused", error=str(error))
        return EXIT_HANDLERS_REFUSED
    line = sys.stdin.buffer.readline()
    if not line:
        return EXIT_DRAINED
    orders = Orders.parse(line)
    bind_process(worker=str(orders.worker_id), role=orders.role)
    return uvloop.run(_work(settings, registry, orders))


def _exit(code: int) -> None:
    """Ends even when a handler's thread does not."""
    sys.stdout.flush()
    sys.stderr.flush()
    stuck = [
        thread for thread in threading.enumerate() if thread is not threading.current_thread() and not thread.daemon
    ]
    if stuck:
        log.warning("threads_left_behind", count=len(stuck))
    os._exit(code)


if __name__ == "__main__":
    _exit(main())
