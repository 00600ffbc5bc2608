"""Threads for code that blocks.

They are daemons: a thread that hangs must not hold up the end of its process, and nothing can end it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

from workers.guarding.copies import end_copies

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Work:
    call: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[tuple[Any, BaseException | None]]
    running: bool = False
    given_up: bool = False


class Threads:
    """At most `threads_max` threads, started when needed and kept; more work waits its turn."""

    def __init__(self, threads_max: int) -> None:
        self._threads_max = threads_max
        self._threads = 0
        self._idle = 0
        self._stragglers = 0
        self._waiting: deque[_Work] = deque()
        self._ready = threading.Condition()

    @property
    def stragglers(self) -> int:
        """Calls whose caller was cancelled and that still run."""
        return self._stragglers

    async def run(self, call: Callable[[], T]) -> T:
        """What the call returns or raises. Cancelled, it leaves a call that has begun to itself."""
        loop = asyncio.get_running_loop()
        scope = copy_context()
        work = _Work(lambda: scope.run(call), loop, loop.create_future())
        self._submit(work)
        try:
            value, error = await work.answer
        except asyncio.CancelledError:
            self._give_up(work)
            raise
        if error is not None:
            raise error
        return value

    def _submit(self, work: _Work) -> None:
        with self._ready:
            self._waiting.append(work)
            if len(self._waiting) > self._idle and self._threads < self._threads_max:
                self._threads += 1
                threading.Thread(target=self._serve, name=f"outlast-call-{self._threads}", daemon=True).start()
            self._ready.notify()

    def _give_up(self, work: _Work) -> None:
        with self._ready:
            work.given_up = True
            self._stragglers += work.running

    def _serve(self) -> None:
        while True:
            work = self._next()
            answer = _answer_of(work.call)
            end_copies()
            self._finish(work, answer)
            del work, answer  # an idle thread keeps nothing of the last job alive

    def _next(self) -> _Work:
        with self._ready:
            while True:
                while not self._waiting:
                    self._idle += 1
                    self._ready.wait()
                    self._idle -= 1
                work = self._waiting.popleft()
                if not work.given_up:
                    work.running = True
                    return work

    def _finish(self, work: _Work, answer: tuple[Any, BaseException | None]) -> None:
        with self._ready:
            work.running = False
            self._stragglers -= work.given_up
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            work.loop.call_soon_threadsafe(_deliver, work.answer, answer)


def _answer_of(call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    try:
        return call(), None
    except BaseException as error:
        return None, error


def _deliver(future: asyncio.Future[Any], answer: tuple[Any, BaseException | None]) -> None:
    if not future.done():
        future.set_result(answer)
