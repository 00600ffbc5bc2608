"""One hit: an order laid out, a job led to the point, and what became of both."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from app.failpoints import Action
from tests.chaos.plan import Submit
from tests.chaos.points_cases import Case, Deed, Until
from tests.chaos.points_ground import Ground, let_go
from tests.chaos.records import Finding, Fired
from tests.chaos.world import until
from tests.processes import Process

TRIES = 3
MOMENT_SECONDS = 0.3
END_SECONDS = 90.0


@dataclass(frozen=True, slots=True)
class Hit:
    """A process that ended, stopped or failed at a point, `at` a time, with the job on its way there."""

    case: Case
    action: Action
    transport: str
    job_id: str
    pid: int
    at: float
    ended_at: float


class Missed(Exception):
    """The hit did not come to its end."""


class PassedBy(Missed):
    """The job went another way, which it may: a worker took it from PostgreSQL before the relay came to it."""


async def hit(ground: Ground, case: Case, action: Action, nth: int) -> Hit | None:
    """Carries one hit out. Nothing when it did not come to its end; why is a finding."""
    name = f"{ground.transport} {case.point} {action} {nth}"
    why: Missed = PassedBy("nobody came to the point")
    try:
        for again in range(TRIES):
            await _must(ground.quiet(), "it was not quiet before")
            with suppress(PassedBy):
                return await _Try(ground, case, action, f"{name} {again}".replace(" ", "-")).run()
    except Missed as missed:
        why = missed
    ground.findings.append(Finding("missed", "", f"{name}: {why}"))
    return None


class _Try:
    """A hit on its way. `key` is that of its job."""

    def __init__(self, ground: Ground, case: Case, action: Action, key: str) -> None:
        self._ground = ground
        self._case = case
        self._action = action
        self._key = key
        self._attempt = 2 if case.deed is Deed.REPLAY else 1
        self._begun: asyncio.Future[object] | None = None

    async def run(self) -> Hit:
        submit = Submit(0, self._key, self._case.part, self._case.seconds, 0)
        if self._case.deed is Deed.SUBMIT:
            pid, at = await self._obeyed(lambda: self._start(self._ground.caller.submit(submit)))
        else:
            await self._ground.caller.submit(submit)
            pid, at = await self._obeyed(await self._prepared())
        await self._see_to_the_end(pid)
        job_id, ended_at = await self._ground.job(self._key), await self._ended_at()
        assert job_id is not None
        assert ended_at is not None
        name = f"{self._case.point} {self._action}"
        self._ground.faults.fired.append(Fired(at, max(at, ended_at), name, str(pid)))
        return Hit(self._case, self._action, self._ground.transport, job_id, pid, at, ended_at)

    async def _prepared(self) -> Callable[[], None]:
        """What is left to do for the job to come to the point."""
        ground, job_id = self._ground, await self._ground.job(self._key)
        assert job_id is not None
        if self._case.deed is Deed.REPLAY:
            await self._until(lambda: ground.ended_at(self._key), "the job was not dead")
            return lambda: self._start(self._replay(job_id))
        await self._until(lambda: ground.recorded(job_id), "the job did not run")
        holder = await ground.holder(job_id)
        return (lambda: os.kill(holder, signal.SIGKILL)) if self._case.deed is Deed.BEREAVE else (lambda: None)

    async def _obeyed(self, begin: Callable[[], None]) -> tuple[int, float]:
        case = self._case
        before = self._ground.order(self._action, case.point, case.detail)
        begin()
        found = await self._ground.obeyed(case.point, case.detail, before, self._key, self._attempt)
        if found is None:
            raise PassedBy
        return found

    async def _see_to_the_end(self, pid: int) -> None:
        """Until the job has ended, whatever was begun has come back, and who was stopped goes on."""
        if self._action is Action.STOP:
            try:
                await self._held()
            finally:
                let_go(pid)
        if self._begun is not None:
            await asyncio.wait_for(self._begun, END_SECONDS)
        await self._until(self._ended_at, "the job has not ended")

    async def _held(self) -> None:
        match self._case.until:
            case Until.MOMENT:
                await asyncio.sleep(MOMENT_SECONDS)
            case Until.OTHERS_END:
                await self._until(self._ended_at, "nobody else has ended the job")
            case Until.ENTRY_TAKEN:
                await self._until(self._no_entry, "nobody else has taken the entry over")

    async def _no_entry(self) -> bool:
        return await self._ended_at() is not None and not self._ground.at_broker()

    async def _ended_at(self) -> float | None:
        return await self._ground.ended_at(self._key, self._attempt)

    async def _replay(self, job_id: str) -> None:
        """The command, given again with the same id when it was killed."""
        code = -signal.SIGKILL
        while code == -signal.SIGKILL:
            process = self._ground.replay(job_id, self._key)
            await self._until(partial(_gone, process), "the replay command does not end")
            code = process.popen.returncode
        if code != 0:
            raise Missed(f"the replay command ended with {code}")

    def _start(self, work: Awaitable[object]) -> None:
        self._begun = asyncio.ensure_future(work)

    async def _until(self, condition: Callable[[], Awaitable[object]], otherwise: str) -> None:
        await _must(until(condition, END_SECONDS), otherwise)


async def _must(condition: Awaitable[bool], otherwise: str) -> None:
    if not await condition:
        raise Missed(otherwise)


async def _gone(process: Process) -> bool:
    return not process.alive()
