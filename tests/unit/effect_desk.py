"""One job over its attempts, on a ledger in memory: for tests of what effects promise."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.domain.errors import (
    NotPerformed,
)
from app.domain.states import EffectState
from tests.unit.leased import JOB, FakeLease
from workers.effects import EffectEngine
from workers.handling.calling import Caller
from workers.handling.context import Context
from workers.handling.memory_ledger import MemoryLedger
from workers.handling.threads import Threads


class Desk:
    """One job over its attempts: a ledger that outlives them, and what was called outside."""

    def __init__(self, ledger: MemoryLedger | None = None) -> None:
        self.ledger = ledger or MemoryLedger()
        self.caller = Caller(Threads(8))
        self.calls: list[Any] = []
        self.attempt_number = 0
        self.engine: EffectEngine
        self.lease: FakeLease

    def attempt(self) -> Context:
        """The next attempt takes the lease; the one before is fenced."""
        self.attempt_number += 1
        self.ledger.held = self.attempt_number
        self.lease = FakeLease(JOB._replace(attempt=self.attempt_number))
        self.engine = EffectEngine(self.lease, self.ledger, self.caller, effect_bytes_max=1_000)
        return Context(self.lease, self.engine)

    def state(self, key: str) -> EffectState:
        return self.ledger.rows[JOB.id, key].state

    async def send(self, text: str) -> str:
        self.calls.append(text)
        return f"sent {text}"

    async def fail(self, text: str) -> str:
        self.calls.append(text)
        raise ValueError("the line went dead")

    async def refuse(self, text: str) -> str:
        self.calls.append(text)
        raise NotPerformed("nobody listens")

    async def hang(self, text: str) -> str:
        self.calls.append(text)
        await asyncio.get_running_loop().create_future()
        raise AssertionError("a hung call returned")


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0)


async def cut_off(effect: Awaitable[Any], desk: Desk) -> None:
    """Lets the effect begin its call and cancels it there: the process died."""
    task = asyncio.ensure_future(effect)
    before = len(desk.calls)
    await until(lambda: len(desk.calls) > before)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
