"""Runs handlers on jobs as a worker does, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any

from app.domain.outcomes import Bury, Outcome
from app.domain.states import Reason
from app.settings import Settings
from tests.unit.leased import FakeLease, a_job
from workers.executor import Executor
from workers.handling.memory_ledger import MemoryLedger
from workers.registry import task_of

SETTINGS = Settings(max_result_bytes=100, suspect_seconds=0.4, heartbeat_seconds=0.1, lease_seconds=1, max_releases=3)


class Running:
    """An attempt under way; to await it is to wait for how it ended."""

    def __init__(self, executor: Executor, handler: Callable[..., Any], lease: FakeLease) -> None:
        self.ended: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.attempt = executor.begin(task_of(handler), lease, self.ended.set_result)

    def __await__(self) -> Generator[Any, None, Outcome]:
        return self.ended.__await__()


class Bench:
    """Runs handlers on jobs, as a worker does."""

    def __init__(self) -> None:
        self.ledger = MemoryLedger()
        self.ledger.held = 1
        self.executor = Executor(SETTINGS, self.ledger, random=lambda: 0.5)

    def start(self, handler: Callable[..., Any], **job: Any) -> tuple[Running, FakeLease]:
        lease = FakeLease(a_job(**job))
        return Running(self.executor, handler, lease), lease

    async def run(self, handler: Callable[..., Any], **job: Any) -> Outcome:
        running, _ = self.start(handler, **job)
        return await running


def reason_of(outcome: Outcome) -> Reason:
    assert isinstance(outcome, Bury)
    return outcome.reason


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)
