"""One attempt of a job at work: its handler in a task of its own, its time, and whatever ends it from outside.

A handler that swallows its cancellation, or blocks, cannot hold up the end of its attempt: it is left adrift, with a
closed context and a dead attempt number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from app.domain.decide import Ending, Fenced, Final, Interrupted, OutOfTime, Returned
from app.domain.errors import TooLarge
from app.domain.states import Reason
from app.failpoints import Point, reach
from app.telemetry import bind_job, frames, log
from workers.effects import EffectEngine
from workers.guarding.copies import in_original
from workers.handling.calling import Caller
from workers.handling.context import Context
from workers.handling.failures import described, ending_of, failure_of
from workers.handling.ledger import Ledger
from workers.handling.roundtrip import published
from workers.handling.run_lease import RunLease
from workers.handling.sync_context import SyncContext
from workers.registry import Task


@dataclass(frozen=True, slots=True)
class Means:
    """What all attempts of a process share.

    `handlers` calls those that run in threads, `effects` what is performed. A cancelled handler may take
    `clean_up_seconds` to clean up.
    """

    ledger: Ledger
    handlers: Caller
    effects: Caller
    result_bytes_max: int
    effect_bytes_max: int
    clean_up_seconds: float


class _Handler(asyncio.Task[Ending]):
    """Knows whether it was the handler itself that cancelled it."""

    by_itself = False

    def cancel(self, msg: Any | None = None) -> bool:
        self.by_itself = asyncio.current_task(self.get_loop()) is self
        return super().cancel(msg)


class Attempt:
    """Begins at once. `on_end` is told how it ended, once, on the loop and never before this returns."""

    __slots__ = ("_context", "_cutter", "_hurry", "_means", "_on_end", "_timer", "effects", "handler", "lease", "task")

    def __init__(self, task: Task, lease: RunLease, means: Means, on_end: Callable[[Ending], None]) -> None:
        self.task = task
        self.lease = lease
        self.effects = EffectEngine(lease, means.ledger, means.effects, effect_bytes_max=means.effect_bytes_max)
        self._means = means
        self._on_end = on_end
        context = Context(lease, self.effects)
        self._context: Context | SyncContext = context if task.is_async else SyncContext(lease, context)
        self._cutter: asyncio.Task[Ending] | None = None
        self._hurry: asyncio.Event | None = None
        loop = asyncio.get_running_loop()
        self.handler = _Handler(self._work(), loop=loop)
        self.handler.add_done_callback(self._on_handler_end)
        self._timer = loop.call_later(lease.job.run_seconds, self._on_time_up)

    def interrupt(self) -> None:
        """Ends it as its lease says: `lost`, or `releasing`, which lets a call come to its record that must not be cut.

        Called again it no longer waits for that.
        """
        if self.handler.done():
            return  # how it ended is about to be told
        if self._hurry is not None:
            self._hurry.set()
            return
        waits = self.effects.uncut.any and not self.lease.lost
        if not waits:
            self._cancel()
        self._cut_short(self._interrupted, waits)

    async def _work(self) -> Ending:
        job = self.lease.job
        bind_job(job.id, job.attempt)
        try:
            reach(Point.START_BEFORE, self.task.name)
            ending = await self._handled()
            reach(Point.FINISH_RETURNED, self.task.name)
            return ending
        except Exception as error:
            # A fault of ours, not of the job: it goes back uncharged, and the cap on releases keeps it from looping.
            log.error("executor_failed", error_type=type(error).__qualname__, where=frames(error))
            return Interrupted(f"the executor failed with {type(error).__qualname__}")

    async def _handled(self) -> Ending:
        """The handler from its input to its checked result, with everything it raises."""
        try:
            given = self.task.input.validate_json(self.lease.job.input)
        except BaseException as error:  # validators are the author's code, too
            return Final(Reason.INVALID_INPUT, failure_of(error))
        try:
            value = await self._called(given)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            log.info("handler_raised", error_type=type(error).__qualname__, where=frames(error))
            await self.effects.settle()
            return ending_of(self.effects.fatal or error)
        await self.effects.settle()
        if self.effects.fatal is not None:
            return ending_of(self.effects.fatal)
        return self._judged(value)

    async def _called(self, given: Any) -> Any:
        function, context = self.task.function, self._context
        if self.task.is_async:
            return await in_original(function(context, given))
        return await self._means.handlers.run(self.task.name, function, context, given)

    def _judged(self, value: object) -> Ending:
        try:
            return Returned(published(self.task.output, value, bytes_max=self._means.result_bytes_max))
        except TooLarge as error:
            return Final(Reason.RESULT_TOO_LARGE, described("ResultTooLarge", f"the result has {error}"))
        except BaseException as error:  # serializers are the author's code, too
            return Final(Reason.INVALID_OUTPUT, failure_of(error))

    def _on_handler_end(self, _: asyncio.Task[Ending]) -> None:
        if self._cutter is None:
            self._timer.cancel()
            self._tell(self._ended())

    def _ended(self) -> Ending:
        if not self.handler.cancelled():
            return self.handler.result()
        if self.handler.cancelling() and not self.handler.by_itself:
            return Interrupted("cancelled by code of another job")
        return Final(Reason.PERMANENT_ERROR, described("CancelledError", "the handler cancelled itself"))

    def _on_time_up(self) -> None:
        if not self.handler.done() and self._hurry is None:
            self._cancel()
            self._cut_short(self._out_of_time)

    def _cut_short(self, cutting: Callable[..., Coroutine[Any, Any, Ending]], *args: Any) -> None:
        self._timer.cancel()
        self._hurry = asyncio.Event()
        self._cutter = asyncio.get_running_loop().create_task(cutting(*args))
        self._cutter.add_done_callback(self._on_cut)

    def _on_cut(self, cutter: asyncio.Task[Ending]) -> None:
        # Code of a handler may cancel every task it finds.
        self._tell(self._unexplained() if cutter.cancelled() else cutter.result())

    def _tell(self, ending: Ending) -> None:
        on_end, self._on_end = self._on_end, _told  # who is told holds the attempt: a cycle less to be looked for
        on_end(ending)

    async def _out_of_time(self) -> Ending:
        job = self.lease.job
        await self._cleaned_up()
        bound = "the deadline" if job.deadline_binds else "its time-out"
        return OutOfTime(described("TimeoutError", f"the attempt ran for {job.run_seconds:.3g} s, up to {bound}"))

    async def _interrupted(self, waits: bool) -> Ending:
        if waits:
            # Cut off now, a call in flight that must not be repeated would end its job as unknown.
            await self._first_of(self.effects.uncut.none_left())
            if self.handler.done() and not self.handler.cancelled():
                return self._ended()
            self._cancel()
            self._hurried().clear()
        await self._cleaned_up()
        return self._unexplained()

    def _unexplained(self) -> Ending:
        return Fenced() if self.lease.lost else Interrupted("shutdown")

    def _cancel(self) -> None:
        self.effects.close()
        if isinstance(self._context, SyncContext):
            self._context.close()
        self.handler.cancel()

    async def _cleaned_up(self) -> None:
        """Returns once the cancelled handler has ended, or is left adrift."""
        job = self.lease.job
        bind_job(job.id, job.attempt)
        await self._first_of(asyncio.sleep(self._means.clean_up_seconds))
        if not self.handler.done():
            log.warning("handler_adrift", kind=self.task.name)

    async def _first_of(self, other: Coroutine[Any, Any, None]) -> None:
        """Waits for the handler, or for `other`, or until somebody is in a hurry."""
        waiters = [asyncio.ensure_future(other), asyncio.ensure_future(self._hurried().wait())]
        try:
            await asyncio.wait((self.handler, *waiters), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiter in waiters:
                waiter.cancel()

    def _hurried(self) -> asyncio.Event:
        assert self._hurry is not None
        return self._hurry


def _told(ending: Ending) -> None:
    raise AssertionError(f"an attempt ended twice, at last as {ending}")
