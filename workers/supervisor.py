"""`outlast worker`: a small parent that runs no job, and the children that do.

When a child dies the supervisor says so at once in `workers`, with the cause, takes its jobs back and has another
child at work: one is always kept ready. It also gives each job before its last start a child of its own, so that only
the culprit can use up its crash budget, and it watches the fleet for processes that died with their supervisor.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from uuid import UUID, uuid4

import uvloop

from app import failpoints
from app.domain.errors import DatabaseAway
from app.settings import Settings
from app.store.database import Database
from app.store.fleet import Fleet, Rescued
from app.telemetry import configure, frames, log
from app.usecases.awaken import awaken
from workers.exits import EXIT_DRAINED, EXIT_FAILED, EXIT_HANDLERS_REFUSED, WRITE_SECONDS
from workers.guarding.ending import end
from workers.guarding.stop_signals import HURRYING, blocked
from workers.orders import Orders
from workers.rescuer import Rescuer

EXIT_OK = 0
EXIT_NOT_DRAINED = 1
EXIT_USAGE = 2

SHORT_LIFE_SECONDS = 2.0
RESTART_SECONDS_MAX = 5.0
LAST_START_SECONDS = 0.5
CLAIM_SECONDS = 10.0
AGAIN_SECONDS = 0.2
MIB_IN_KIB = 1024


class Child:
    """A child process: kept ready until it has orders."""

    def __init__(self, on_end: Callable[[Child, str, int], None]) -> None:
        self.orders: Orders | None = None
        self.lost_jobs = asyncio.Event()  # it ended with some, which are charged for it
        self.ordered_at = time.monotonic()  # without orders: since it was started
        with blocked():
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "workers.child", str(os.getpid())], stdin=subprocess.PIPE, start_new_session=True
            )
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._wait, args=(on_end,), name="wait", daemon=True).start()

    def order(self, orders: Orders) -> None:
        """Sets it to work."""
        self.orders = orders
        self.ordered_at = time.monotonic()
        assert self._popen.stdin is not None
        try:
            self._popen.stdin.write(orders.line())
            self._popen.stdin.flush()
        except BrokenPipeError:
            # It has died already; its end is on its way to us.
            return

    def age_seconds(self) -> float:
        """Since it was set to work."""
        return time.monotonic() - self.ordered_at

    def dismiss(self) -> None:
        """Ends it if it has no orders yet."""
        assert self._popen.stdin is not None
        self._popen.stdin.close()

    def send(self, number: signal.Signals) -> None:
        """Signals it; a child that has been reaped is left alone."""
        if self._popen.returncode is None:
            os.kill(self._popen.pid, number)

    def _wait(self, on_end: Callable[[Child, str, int], None]) -> None:
        _, status, usage = os.wait4(self._popen.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        self._popen.returncode = code
        how = f"killed by signal {-code}" if code < 0 else f"exited with code {code}"
        cause = f"{how}, {usage.ru_maxrss // MIB_IN_KIB} MiB at most"
        try:
            self._loop.call_soon_threadsafe(on_end, self, cause, code)
        except RuntimeError:
            # The loop is closed: nobody is left to be told.
            return


class Supervisor:
    """Keeps `processes` children at work until told to stop."""

    def __init__(self, settings: Settings, processes: int, db: Database) -> None:
        self._settings = settings
        self._processes = processes
        self._db = db
        self._fleet = Fleet(db)
        self._rescuer = Rescuer(settings, uuid4())
        self._children: set[Child] = set()
        self._ready: Child | None = None
        self._short_lives = 0
        self._exit_code = EXIT_OK
        self._stopping = asyncio.Event()
        self._idle = asyncio.Event()
        self._background: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        """From the first child to the last; the exit code."""
        self._obey_signals()
        for _ in range(self._processes):
            self._put_to_work(Orders(uuid4()))
        self._keep_one_ready()
        loops = [self._watched(loop) for loop in (self._rescuer.run(self._on_rescue), self._give_last_starts())]
        await self._stopping.wait()
        await self._drain()
        await end([*loops, *self._background])
        await self._rescuer.close()
        await self._db.close()
        return self._exit_code

    def stop(self) -> None:
        """Lets the children drain."""
        self._stopping.set()
        if self._ready is not None:
            self._ready.dismiss()
        self._tell(signal.SIGTERM)

    def _on_signal(self) -> None:
        """The first signal stops, the second one hurries."""
        if self._stopping.is_set():
            self._tell(HURRYING)
        else:
            self.stop()

    def _tell(self, number: signal.Signals) -> None:
        for child in self._children:
            if child.orders is not None:
                child.send(number)

    async def _drain(self) -> None:
        longest = self._settings.shutdown_seconds + 2 * WRITE_SECONDS
        try:
            await asyncio.wait_for(self._until_idle(), longest)
        except TimeoutError:
            log.error("children_did_not_end", count=len(self._children))
            self._exit_code = EXIT_NOT_DRAINED
            for child in self._children:
                child.send(signal.SIGKILL)
            await self._until_idle()
        await asyncio.wait(self._background, timeout=WRITE_SECONDS) if self._background else None

    async def _until_idle(self) -> None:
        while self._children:
            self._idle.clear()
            await self._idle.wait()

    def _put_to_work(self, orders: Orders) -> None:
        child, self._ready = self._ready or self._start(), None
        child.order(orders)
        log.info("child_ordered", worker=str(orders.worker_id), as_role=orders.role)

    def _keep_one_ready(self) -> None:
        if self._ready is None and not self._stopping.is_set():
            self._ready = self._start()

    def _start(self) -> Child:
        child = Child(self._on_end)
        self._children.add(child)
        return child

    def _on_end(self, child: Child, cause: str, code: int) -> None:
        self._children.discard(child)
        self._idle.set()
        if child is self._ready:
            self._ready = None
        if code == EXIT_HANDLERS_REFUSED:
            self._exit_code = EXIT_USAGE
            self.stop()
        elif code != EXIT_DRAINED and self._stopping.is_set():
            self._exit_code = self._exit_code or EXIT_NOT_DRAINED
        if child.orders is not None:
            log.warning("child_ended", worker=str(child.orders.worker_id), as_role=child.orders.role, cause=cause)
            self._spawn(self._bury(child, child.orders.worker_id, cause))
        if not self._stopping.is_set():
            self._spawn(self._replace(child))

    async def _bury(self, child: Child, worker_id: UUID, cause: str) -> None:
        """Says that the child is gone and takes its jobs back, until PostgreSQL has heard it."""
        while True:
            try:
                if await self._fleet.leave(worker_id, cause):
                    child.lost_jobs.set()
                self._on_rescue(await self._rescuer.run_once())
                return
            except DatabaseAway as error:
                log.warning("death_not_told_yet", worker=str(worker_id), error=str(error))
            except Exception as error:
                log.error("rescue_failed", error_type=type(error).__qualname__, where=frames(error))
            await asyncio.sleep(AGAIN_SECONDS)

    async def _replace(self, child: Child) -> None:
        """Another child in its place: at once after a long life, ever later after short ones.

        A life that ended with jobs is paid for by them, and their budgets keep it from going on for ever: whoever waits
        beside them need not wait for that.
        """
        lived = child.age_seconds()
        self._short_lives = self._short_lives + 1 if lived < SHORT_LIFE_SECONDS else 0
        if self._short_lives > 1:
            pause = min(RESTART_SECONDS_MAX, AGAIN_SECONDS * 2**self._short_lives)
            with suppress(TimeoutError):
                await asyncio.wait_for(child.lost_jobs.wait(), pause)
                self._short_lives = 0
        if self._stopping.is_set():
            return
        if child.orders is not None and child.orders.last_start is None:
            self._put_to_work(Orders(uuid4()))
        self._keep_one_ready()

    async def _give_last_starts(self) -> None:
        while True:
            await asyncio.sleep(LAST_START_SECONDS)
            try:
                await self._give_last_starts_once()
            except DatabaseAway as error:
                log.debug("last_starts_not_seen", error=str(error))

    async def _give_last_starts_once(self) -> int:
        """Children for jobs before their last start; how many were begun. Raises `DatabaseAway`."""
        orders = [(child.orders, child.age_seconds()) for child in self._children if child.orders is not None]
        alone = [(one.last_start, age) for one, age in orders if one.last_start is not None]
        worker = next((one.worker_id for one, _ in orders if one.last_start is None), None)
        room = self._settings.solo_processes - len(alone)
        if worker is None or room <= 0:
            return 0
        # Who ran one may run another by now; only of a young child it is known which it is about to claim.
        given = {job_id for job_id, age_seconds in alone if age_seconds < CLAIM_SECONDS}
        waiting = await self._fleet.solo_waiting(worker, room + len(given))
        if self._stopping.is_set():
            return 0
        begun = [job_id for job_id in waiting if job_id not in given][:room]
        for job_id in begun:
            self._put_to_work(Orders(uuid4(), last_start=job_id))
            self._keep_one_ready()
        return len(begun)

    def _on_rescue(self, rescued: Sequence[Rescued]) -> None:
        if rescued:
            self._spawn(awaken(self._db, {job.queue for job in rescued if not job.dead}))

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = self._watched(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _watched(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Work that nothing else would miss: when it fails the children drain, and whoever runs us starts anew."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._on_work_end)
        return task

    def _on_work_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("work_failed", error_type=type(error).__qualname__, where=frames(error))
            self._exit_code = self._exit_code or EXIT_FAILED
            if not self._stopping.is_set():
                self.stop()

    def _obey_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)


async def _supervise(settings: Settings, processes: int) -> int:
    db = await Database.open(settings, "supervisor", size_max=2)
    return await Supervisor(settings, processes, db).run()


def run(settings: Settings, processes: int) -> int:
    """Runs children until SIGTERM or SIGINT; the exit code. A second signal hurries them."""
    configure(settings, "supervisor")
    failpoints.arm(settings)
    return uvloop.run(_supervise(settings, processes))
