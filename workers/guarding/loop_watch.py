"""Notices code that holds up the whole process, and says whose it is.

A handler that computes, or calls what blocks, in an `async def` stops every job of its process: nothing here can stop
it, so it is shown. The watch lives in the heartbeat's thread and asks the event loop for a sign of life; a loop that
owes one for a second is reported once, with the stack of its thread and the job it runs.

C code that never lets go of the interpreter stops this thread too. The moment it lets go this thread is next, while the
loop's is still inside the call: its stack says who it was, and of a process that was stopped, where it stood.
A watchdog that needs no interpreter could say it sooner, but reads the stacks of threads while they run: in a process
that goes on after a stop, which to it looks the same, that ends in a segmentation fault.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from app.domain.leased import LeasedJob
from app.telemetry import log, stack

LOOK_SECONDS = 0.2
BLOCKED_SECONDS = 1.0

Owner = Callable[[asyncio.Task[Any]], tuple[LeasedJob, str] | None]


class LoopWatch:
    """Made on the event loop it watches. `episodes` counts how often that was blocked.

    `owner` tells, from any thread, the job a task works for and the kind of its handler.
    """

    def __init__(self, owner: Owner = lambda _: None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.episodes = 0
        self._owner = owner
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._looked_at = clock()
        self._asked_at: float | None = None
        self._answered = False
        self._reported = False

    async def run(self) -> None:
        """Watches until cancelled, on the loop of another thread."""
        while True:
            self.run_once()
            await asyncio.sleep(LOOK_SECONDS)

    def run_once(self) -> bool:
        """Looks once; whether the loop is blocked."""
        now = self._clock()
        held_seconds, self._looked_at = now - self._looked_at, now
        if held_seconds >= BLOCKED_SECONDS:
            # Nothing in this process ran: what the loop owes since then says nothing about the loop.
            log.warning("process_stood_still", seconds=round(held_seconds, 1), where=self._where())
            self._asked_at = None
        elif self._answered and self._reported and self._asked_at is not None:
            log.warning("loop_free_again", blocked_seconds=round(now - self._asked_at, 1))
        if self._asked_at is None or self._answered:
            self._ask(now)
        elif not self._reported and now - self._asked_at >= BLOCKED_SECONDS:
            self._report()
        return self._reported

    def _ask(self, now: float) -> None:
        self._asked_at, self._answered, self._reported = now, False, False
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self._answered = True

    def _report(self) -> None:
        self._reported = True
        self.episodes += 1
        task = asyncio.current_task(self._loop)
        owner = None if task is None else self._owner(task)
        whose = {} if owner is None else {"job": str(owner[0].id), "attempt": owner[0].attempt, "kind": owner[1]}
        log.warning("loop_blocked", **whose, nth=self.episodes, where=self._where())

    def _where(self) -> list[str]:
        """The stack of the loop's thread."""
        # The only way to another thread's.
        frame = sys._current_frames().get(self._thread_id)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return [] if frame is None else stack(frame)
