"""Runs one attempt of a job and says how it ended.

The handler runs in a task (or thread) of its own, so that one which swallows its cancellation, or
blocks, cannot hold up the end of its attempt: it is left adrift, with a closed context and a dead
attempt number, and keeps the slot of its job until it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from app.domain.decide import Budget, Ending, Fenced, Final, Interrupted, OutOfTime, Returned, decide
from app.domain.errors import TooLarge
from app.domain.leased import LeasedJob
from app.domain.outcomes import Outcome
from app.domain.states import Reason
from app.settings import Settings
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
from workers.handling.threads import Threads
from workers.registry import Task

# How long a cancelled handler may take to clean up; less than the grace after which others take its job.
CLEAN_UP_SECONDS = 1.0


class _Attempt:
    """One handler at work: its task, its effects, and the contexts that die with it."""

    def __init__(self, task: Task, lease: RunLease, effects: EffectEngine) -> None:
        self.task = task
        self.lease = lease
        self.effects = effects
        self.context = Context(lease, effects)
        self.sync_context = None if task.is_async else SyncContext(lease, self.context)

    def close(self) -> None:
        self.effects.close()
        if self.sync_context is not None:
            self.sync_context.close()


class Executor:
    """Runs handlers, one per process.

    `random` gives numbers in [0, 1) for the jitter of retries.
    """

    def __init__(
        self,
        settings: Settings,
        ledger: Ledger,
        *,
        random: Callable[[], float],
        caller: Callable[[Threads], Caller] = Caller,
    ) -> None:
        self._ledger = ledger
        self._random = random
        self._budget = Budget(settings.backoff_base_seconds, settings.backoff_cap_seconds, settings.max_releases)
        self._result_bytes_max = settings.max_result_bytes
        self._effect_bytes_max = settings.max_effect_bytes
        self._clean_up_seconds = min(CLEAN_UP_SECONDS, settings.suspect_seconds / 2)
        # Two pools: a thread of a handler that waits for an effect must not hold the thread its effect needs.
        self._handler_threads = Threads(settings.worker_concurrency)
        self._effect_threads = Threads(settings.worker_concurrency)
        self._handlers = Caller(self._handler_threads)
        self._effects = caller(self._effect_threads)
        self._at_work: dict[asyncio.Task[Ending], _Attempt] = {}
        self._adrift: set[asyncio.Task[Ending]] = set()

    @property
    def stragglers(self) -> int:
        """Runs that were given up but whose code still runs. Each keeps the slot of its job until it ends."""
        return len(self._adrift) + self._handler_threads.stragglers + self._effect_threads.stragglers

    def owner_of(self, task: asyncio.Task[Any]) -> tuple[LeasedJob, str] | None:
        """The job that a task works for, as its handler or within one of its effects, and its kind. From any thread."""
        for handler, attempt in list(self._at_work.items()):
            if task is handler or attempt.effects.runs_in(task):
                return attempt.lease.job, attempt.task.name
        return None

    async def execute(self, task: Task, lease: RunLease) -> Outcome:
        """Runs `lease.job` with `task` and returns how it ended; it never raises what the handler raised.

        Cancelled with `lease.lost` set it returns `Gone`, with `lease.releasing` set `Release`;
        cancelled with neither it raises `CancelledError`.
        """
        return decide(await self._ending(task, lease), lease.job, self._budget, self._random())

    async def _ending(self, task: Task, lease: RunLease) -> Ending:
        try:
            given = task.input.validate_json(lease.job.input)
        except BaseException as error:  # validators are the author's code, too
            return Final(Reason.INVALID_INPUT, failure_of(error))
        effects = EffectEngine(lease, self._ledger, self._effects, effect_bytes_max=self._effect_bytes_max)
        attempt = _Attempt(task, lease, effects)
        handler = asyncio.create_task(self._handle(attempt, given))
        self._at_work[handler] = attempt
        handler.add_done_callback(self._at_work.pop)
        try:
            await asyncio.wait((handler,), timeout=lease.job.run_seconds)
        except asyncio.CancelledError:
            return await self._interrupted(attempt, handler)
        if handler.done():
            return _ended(handler)
        await self._cut(attempt, handler)
        bound = "the deadline" if lease.job.deadline_binds else "its time-out"
        return OutOfTime(described("TimeoutError", f"the attempt ran for {lease.job.run_seconds:.3g} s, up to {bound}"))

    async def _handle(self, attempt: _Attempt, given: Any) -> Ending:
        """The handler from its call to its checked result, with everything it raises."""
        bind_job(attempt.lease.job.id, attempt.lease.job.attempt)
        try:
            value = await self._called(attempt, given)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            log.info("handler_raised", error_type=type(error).__qualname__, where=frames(error))
            await attempt.effects.settle()
            return ending_of(attempt.effects.fatal or error)
        await attempt.effects.settle()
        if attempt.effects.fatal is not None:
            return ending_of(attempt.effects.fatal)
        return self._judged(attempt.task, value)

    async def _called(self, attempt: _Attempt, given: Any) -> Any:
        function = attempt.task.function
        if attempt.sync_context is None:
            return await in_original(function(attempt.context, given))
        return await self._handlers.run(attempt.task.name, partial(function, attempt.sync_context, given))

    def _judged(self, task: Task, value: object) -> Ending:
        try:
            text = published(task.output, value, bytes_max=self._result_bytes_max)
        except TooLarge as error:
            return Final(Reason.RESULT_TOO_LARGE, described("ResultTooLarge", f"the result has {error}"))
        except BaseException as error:  # serializers are the author's code, too
            return Final(Reason.INVALID_OUTPUT, failure_of(error))
        return Returned(text)

    async def _interrupted(self, attempt: _Attempt, handler: asyncio.Task[Ending]) -> Ending:
        lease = attempt.lease
        if lease.releasing.is_set() and not lease.lost.is_set():
            # Cut off now, a call in flight that must not be repeated would end its job as unknown.
            # A second cancel does not wait.
            with suppress(asyncio.CancelledError):
                await _first_of(handler, attempt.effects.quiet())
            if handler.done() and not handler.cancelled():
                return _ended(handler)
        await self._cut(attempt, handler)
        if lease.lost.is_set():
            return Fenced()
        if lease.releasing.is_set():
            return Interrupted("shutdown")
        raise asyncio.CancelledError

    async def _cut(self, attempt: _Attempt, handler: asyncio.Task[Ending]) -> None:
        """Ends the handler, or leaves it adrift."""
        attempt.close()
        handler.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait((handler,), timeout=self._clean_up_seconds)
        if not handler.done():
            log.warning("handler_adrift", kind=attempt.task.name)
            self._adrift.add(handler)
            handler.add_done_callback(self._adrift.discard)


def _ended(handler: asyncio.Task[Ending]) -> Ending:
    if handler.cancelled():
        return Final(Reason.PERMANENT_ERROR, described("CancelledError", "the handler cancelled itself"))
    return handler.result()


async def _first_of(handler: asyncio.Task[Any], quiet: Coroutine[Any, Any, None]) -> None:
    waiter = asyncio.ensure_future(quiet)
    try:
        await asyncio.wait((handler, waiter), return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiter.cancel()
