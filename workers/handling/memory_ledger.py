"""A ledger in memory, with the guards of the store, for `outlast.testing`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

from app.domain.effects import EffectRow, Grant, IntentAnswer
from app.domain.states import EffectState, Policy

FENCED = IntentAnswer(Grant.FENCED)


class MemoryLedger:
    """Implements `workers.handling.ledger.Ledger` for one job at a time: `held` is the attempt that has its lease."""

    def __init__(self) -> None:
        self.held: int | None = None
        self.rows: dict[tuple[UUID, str], EffectRow] = {}

    async def intent(
        self, job_id: UUID, attempt: int, key: str, policy: Policy, args_digest: bytes, *, again: bool = False
    ) -> IntentAnswer:
        if attempt != self.held:
            return FENCED
        row = self.rows.get((job_id, key))
        if row is not None and not _grantable(row, attempt, policy, args_digest):
            return IntentAnswer(Grant.REFUSED, row)
        calls = 1 if row is None else row.calls + (again or (row.attempt, row.state) != (attempt, EffectState.INTENT))
        self.rows[job_id, key] = EffectRow(key, attempt, policy, args_digest, EffectState.INTENT, None, calls)
        return IntentAnswer(Grant.GRANTED)

    async def record(self, job_id: UUID, attempt: int, key: str, result: str) -> bool:
        row = self.rows.get((job_id, key))
        if attempt != self.held or row is None or row.attempt != attempt:
            return False
        self.rows[job_id, key] = replace(row, state=EffectState.RECORDED, result=result)
        return True

    async def clear(self, job_id: UUID, attempt: int, key: str) -> bool:
        row = self.rows.get((job_id, key))
        if attempt != self.held or row is None or row.attempt != attempt or row.state is not EffectState.INTENT:
            return False
        self.rows[job_id, key] = replace(row, state=EffectState.CLEARED)
        return True

    async def take_over(self, job_id: UUID, attempt: int, key: str, seen_attempt: int) -> bool:
        row = self.rows.get((job_id, key))
        if attempt != self.held or row is None or (row.attempt, row.state) != (seen_attempt, EffectState.INTENT):
            return False
        self.rows[job_id, key] = replace(row, attempt=attempt)
        return True

    async def transact(
        self, job_id: UUID, attempt: int, key: str, args_digest: bytes, call: Callable[[Any], Awaitable[str]]
    ) -> IntentAnswer:
        """`call` gets None: there is no database here."""
        if attempt != self.held:
            return FENCED
        row = self.rows.get((job_id, key))
        if row is not None and row.state is not EffectState.CLEARED:
            return IntentAnswer(Grant.REFUSED, row)
        result = await call(None)
        row = EffectRow(key, attempt, Policy.REPEATABLE, args_digest, EffectState.RECORDED, result, calls=1)
        self.rows[job_id, key] = row
        return IntentAnswer(Grant.GRANTED, row)


def _grantable(row: EffectRow, attempt: int, policy: Policy, args_digest: bytes) -> bool:
    """Whether the store would let an intent replace what is on record."""
    if row.state is EffectState.CLEARED:
        return True
    repeatable = row.policy is Policy.REPEATABLE and policy is Policy.REPEATABLE
    same = row.state is EffectState.INTENT and row.args_digest == args_digest
    return same and (row.attempt == attempt or repeatable)
