"""`outlast relay`: one leads and publishes, the others stand by.

Leading is an advisory lock on one session, and the leader scans on that very session, so who has lost it reads
nothing more. For a moment two may believe to lead; the publisher adds to a stream only what it has read to its end,
so even then nothing is published twice.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from uuid import uuid4

import uvloop

from app import failpoints
from app.domain.errors import BrokerAway, DatabaseAway
from app.garbage import look_seldom
from app.settings import Settings
from app.store.database import Database
from app.store.doorbell import Doorbell
from app.store.fleet import Fleet, Incarnation, Rescued
from app.store.relay import Leadership, OutboxUpkeep
from app.telemetry import bind_process, configure, frames, log, report_task_failure
from app.transport.base import Publisher
from app.transport.connect import publisher
from app.usecases.wake import Waker
from workers.guarding.ending import end
from workers.guarding.loop_watch import LoopWatch
from workers.heart import Answer, Heart
from workers.janitor import Janitor
from workers.relaying.auditor import Auditor
from workers.relaying.dispatcher import Dispatcher
from workers.relaying.promoter import Promoter
from workers.rescuer import Rescuer
from workers.retirer import Retirer

EXIT_OK = 0
EXIT_COUNTED_OUT = 1
EXIT_FAILED = 70  # EX_SOFTWARE of sysexits(3)

YOUNG_OBJECTS = 2_000  # a session that is cut leaves whatever was being read in a cycle with its error
ELECTION_SECONDS = 0.25
HOT_SECONDS = 1.0
HOT_PAUSE_SECONDS = 0.003
PAUSE_SECONDS_MIN = 0.001
HOT_PAUSE_SECONDS_MAX = 0.025
IDLE_PAUSE_SECONDS = 0.05
BROKER_AGAIN_SECONDS_MAX = 1.0
DATABASE_AGAIN_SECONDS_MIN, DATABASE_AGAIN_SECONDS_MAX = 0.05, 1.0
TERM_SECONDS_LEAST = 0.25  # what ends sooner is not tried again at once
PROMOTE_SECONDS = 0.1
CLEAN_SECONDS = 60.0
RETIRE_SECONDS = 3_600.0
AUDIT_SECONDS = 60.0
AUDIT_FIRST_SECONDS = 10.0  # a new leader has more urgent things to do: it looks through two minutes' worth of jobs


class Relay:
    """The parts of one relay process and the story of its life."""

    def __init__(self, settings: Settings, db: Database) -> None:
        self._settings = settings
        self._me = Incarnation(uuid4(), "relay", [], [], 0, settings.transport)
        self._db = db
        self._fleet = Fleet(db)
        self._upkeep = OutboxUpkeep(db)
        self._waker = Waker(db)
        self._heart = Heart(settings, self._me, self._on_answer, LoopWatch())
        self._doorbell = Doorbell(settings, "relay")
        self._publisher: Publisher | None = None if settings.transport == "pg" else publisher(settings)
        self._dispatcher: Dispatcher | None = None
        self._stopping = asyncio.Event()
        self._exit_code = EXIT_OK

    async def run(self) -> int:
        """From entering the fleet to leaving it; the exit code."""
        self._obey_signals()
        bind_process(worker=str(self._me.id))
        self._heart.start()
        loops = [asyncio.create_task(loop) for loop in (self._terms(), self._doorbell.run())]
        for loop in loops:
            loop.add_done_callback(self._on_end)
        await self._stopping.wait()
        await end(loops)
        await self._leave()
        return self._exit_code

    def stop(self) -> None:
        """Ends `run`."""
        self._stopping.set()

    def _on_end(self, loop: asyncio.Task[None]) -> None:
        if not loop.cancelled() and (error := loop.exception()) is not None:
            log.error("loop_failed", error_type=type(error).__qualname__, where=frames(error))
            self._exit_code = EXIT_FAILED
            self.stop()

    async def _terms(self) -> None:
        """Stands by and leads, again and again, whatever happens to the servers."""
        pause = 0.0
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                await self._term()
            except DatabaseAway as error:
                log.warning("term_ended", error=str(error))
            except Exception as error:
                log.error("term_failed", error_type=type(error).__qualname__, where=frames(error))
            # A session that was cut costs streams that run dry: the first try to lead again is made at once.
            lasted = time.monotonic() - began > TERM_SECONDS_LEAST
            pause = 0.0 if lasted else min(DATABASE_AGAIN_SECONDS_MAX, max(DATABASE_AGAIN_SECONDS_MIN, pause * 2))
            await asyncio.sleep(pause * random.uniform(0.5, 1))

    async def _term(self) -> None:
        leadership = await Leadership.open(self._settings)
        try:
            await _until_leader(leadership)
            self._heart.leader = True
            log.info("leads")
            await self._lead(leadership)
        finally:
            self._heart.leader = False
            if self._dispatcher is not None:
                self._dispatcher.forget()
            self._dispatcher = None
            leadership.close()

    async def _lead(self, leadership: Leadership) -> None:
        rescuer = Rescuer(self._settings, self._me.id)
        promoter = Promoter(self._upkeep, self._on_due)
        janitor = Janitor(self._settings, self._upkeep)
        retirer = Retirer(self._settings, self._db)
        auditor = Auditor(self._db)
        loops = [
            asyncio.create_task(self._dispatch(leadership)),
            asyncio.create_task(rescuer.run(self._on_rescue)),
            asyncio.create_task(_repeat("promote", promoter.run_once, PROMOTE_SECONDS)),
            asyncio.create_task(_repeat("clean", janitor.run_once, CLEAN_SECONDS)),
            asyncio.create_task(_repeat("retire", retirer.run_once, RETIRE_SECONDS)),
            asyncio.create_task(
                _repeat("audit", auditor.run_once, AUDIT_SECONDS, first_after_seconds=AUDIT_FIRST_SECONDS)
            ),
        ]
        try:
            ended, _ = await asyncio.wait(loops, return_when=asyncio.FIRST_COMPLETED)
            for loop in ended:
                loop.result()
        finally:
            await end(loops)
            await rescuer.close()

    async def _dispatch(self, leadership: Leadership) -> None:
        if self._publisher is None:
            while True:
                await leadership.hold()
                await asyncio.sleep(ELECTION_SECONDS)
        self._dispatcher = Dispatcher(self._settings, leadership, self._publisher, self._fleet, self._upkeep)
        moved_at, pause = float("-inf"), 0.0
        while True:
            try:
                if await self._dispatcher.run_once():
                    moved_at = time.monotonic()
                self._see_broker(None)
                pause = 0.0
                await self._rest(self._dispatcher, hot=time.monotonic() - moved_at < HOT_SECONDS)
            except BrokerAway as error:
                self._see_broker(error)
                await leadership.hold()
                pause = min(BROKER_AGAIN_SECONDS_MAX, max(0.1, pause * 2))
                await asyncio.sleep(pause * random.uniform(0.5, 1))

    async def _rest(self, dispatcher: Dispatcher, *, hot: bool) -> None:
        """Until there may be something to do: streams that will not run dry soon need no ring answered."""
        patience = dispatcher.patience()
        if hot and patience > HOT_PAUSE_SECONDS:
            await asyncio.sleep(min(patience, HOT_PAUSE_SECONDS_MAX))
        elif hot:
            await asyncio.sleep(PAUSE_SECONDS_MIN)
            await self._doorbell.wait(HOT_PAUSE_SECONDS - PAUSE_SECONDS_MIN)
        else:
            await self._doorbell.wait(IDLE_PAUSE_SECONDS)

    def _see_broker(self, error: BrokerAway | None) -> None:
        if error is not None and self._heart.broker_ok is not False:
            log.warning("broker_away", error=str(error))
        if error is None and self._heart.broker_ok is False:
            log.info("broker_back")
        self._heart.broker_ok = error is None

    def _on_due(self, queues: Collection[str]) -> None:
        """Old rows became due: the leader reads everything, workers without a broker are woken."""
        if self._dispatcher is not None:
            self._dispatcher.look_again()
        self._doorbell.ring()
        self._waker.wake(queues)

    def _on_rescue(self, rescued: Sequence[Rescued]) -> None:
        self._on_due({job.queue for job in rescued if not job.dead})

    def _on_answer(self, answer: Answer) -> None:
        if not answer.beat.known:
            log.error("counted_out", detail="somebody said that this process has ended; a new one must take over")
            self._exit_code = EXIT_COUNTED_OUT
            self.stop()

    async def _leave(self) -> None:
        await self._heart.stop()
        try:
            await self._fleet.leave(self._me.id, "stopped")
        except DatabaseAway as error:
            log.warning("left_without_a_word", error=str(error))
        if self._publisher is not None:
            await self._publisher.close()
        await self._db.close()
        log.info("relay_left")

    def _obey_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)


async def _until_leader(leadership: Leadership) -> None:
    while True:
        if await leadership.try_lead():
            return
        await asyncio.sleep(ELECTION_SECONDS)


async def _repeat(
    what: str, once: Callable[[], Awaitable[object]], every_seconds: float, *, first_after_seconds: float = 0.0
) -> None:
    """Runs `once` for ever; a database that is away is waited for, and what cannot be done ends nobody's term."""
    await asyncio.sleep(first_after_seconds)
    while True:
        try:
            await once()
        except DatabaseAway as error:
            log.warning("not_done_now", what=what, error=str(error))
        except Exception as error:
            log.error("not_done", what=what, error_type=type(error).__qualname__, where=frames(error))
        await asyncio.sleep(every_seconds)


async def _main(settings: Settings) -> int:
    asyncio.get_running_loop().set_exception_handler(report_task_failure)
    return await Relay(settings, await Database.open(settings, "relay")).run()


def run(settings: Settings) -> int:
    """Runs a relay until SIGTERM or SIGINT; the exit code. Blocking."""
    configure(settings, "relay")
    failpoints.arm(settings)
    look_seldom(YOUNG_OBJECTS)
    return uvloop.run(_main(settings))
