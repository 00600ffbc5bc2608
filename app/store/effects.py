"""The effects of jobs in PostgreSQL, guarded by leases; concurrent wishes share a statement.

Implements `workers.handling.ledger.Ledger`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar
from uuid import UUID

from app.coalesce import Coalescer
from app.domain.effects import EffectRow, Grant, IntentAnswer
from app.domain.states import EffectState, Policy
from app.settings import Settings
from app.store.database import Connection, Database, Record, sql
from app.store.fleet import LOCK_CLASS

BATCH_MAX = 500
FENCED = IntentAnswer(Grant.FENCED)
GRANTED = IntentAnswer(Grant.GRANTED)


class _Intent(NamedTuple):
    job_id: UUID
    attempt: int
    key: str
    policy: Policy
    args_digest: bytes
    again: bool


class _Result(NamedTuple):
    job_id: UUID
    attempt: int
    key: str
    result: str


_Asked = TypeVar("_Asked", _Intent, _Result)


class _RecordedMeanwhile(Exception):
    """Rolls a transaction back whose effect another one has put on record."""


class Effects:
    """The effects on record. Every method may raise `DatabaseAway`; all may be sent again.

    `transactions` is a pool for those of handlers, which hold a connection for as long as they like: what else a
    worker has to write must not wait for them. It is `db` unless given.
    """

    def __init__(self, db: Database, settings: Settings, transactions: Database | None = None) -> None:
        self._db = db
        self._transactions = transactions or db
        self._lease_seconds = settings.lease_seconds
        self._intents: Coalescer[_Intent, IntentAnswer] = Coalescer(self._intend, batch_max=BATCH_MAX)
        self._results: Coalescer[_Result, bool] = Coalescer(self._record, batch_max=BATCH_MAX)

    async def intent(
        self, job_id: UUID, attempt: int, key: str, policy: Policy, args_digest: bytes, *, again: bool = False
    ) -> IntentAnswer:
        """Commits the intent to call, before the call."""
        while True:
            answer = await self._intents.submit(_Intent(job_id, attempt, key, policy, args_digest, again))
            if answer.grant is not Grant.REFUSED or answer.row is not None:
                return answer
            # Refused by a row younger than the statement's snapshot: the next one sees it.

    async def record(self, job_id: UUID, attempt: int, key: str, result: str) -> bool:
        """Commits the result (JSON text). False: the lease is gone, nothing was written."""
        return await self._results.submit(_Result(job_id, attempt, key, result))

    async def clear(self, job_id: UUID, attempt: int, key: str) -> bool:
        """Takes my intent back: the call certainly did not happen. False: the lease is gone."""
        return await self._db.fetchval("clear_if_leased", job_id, attempt, key) is not None

    async def take_over(self, job_id: UUID, attempt: int, key: str, seen_attempt: int) -> bool:
        """Makes an intent of `seen_attempt` mine, once its writer is certainly gone."""
        taken = await self._db.fetchval(
            "take_over_if_leased", job_id, attempt, key, seen_attempt, self._lease_seconds, LOCK_CLASS
        )
        return taken is not None

    async def transact(
        self,
        job_id: UUID,
        attempt: int,
        key: str,
        args_digest: bytes,
        call: Callable[[Connection], Awaitable[str]],
    ) -> IntentAnswer:
        """Runs `call(connection)` and records the JSON text it returns, in one transaction: both or neither."""
        while True:
            with suppress(_RecordedMeanwhile):
                return await self._transact(job_id, attempt, key, args_digest, call)

    async def _transact(
        self,
        job_id: UUID,
        attempt: int,
        key: str,
        args_digest: bytes,
        call: Callable[[Connection], Awaitable[str]],
    ) -> IntentAnswer:
        async with self._transactions.transaction() as connection:
            lease = await connection.fetchrow(sql("transact_intent"), job_id, attempt)
            if lease is None:
                return FENCED
            row = await connection.fetchrow(sql("effect"), job_id, key)
            if row is not None and row["state"] != EffectState.CLEARED:
                return IntentAnswer(Grant.REFUSED, _effect(row))
            result = await call(connection)
            worker_id, tenant = lease["worker_id"], lease["tenant"]
            kept = await connection.fetchval(
                sql("transact_record"), job_id, key, tenant, attempt, worker_id, args_digest, result
            )
            if kept is None:
                # A transaction of ours whose answer was lost has come to its end after all: this one must not.
                raise _RecordedMeanwhile
        recorded = EffectRow(key, attempt, Policy.REPEATABLE, args_digest, EffectState.RECORDED, result, calls=1)
        return IntentAnswer(Grant.GRANTED, recorded)

    async def _intend(self, wishes: Sequence[_Intent]) -> list[IntentAnswer | Exception]:
        order, batch = _by_job(wishes)
        rows = await self._db.fetch(
            "intend_if_leased",
            [wish.job_id for wish in batch],
            [wish.attempt for wish in batch],
            [wish.key for wish in batch],
            [wish.policy for wish in batch],
            [wish.args_digest for wish in batch],
            [wish.again for wish in batch],
        )
        answers: list[IntentAnswer | Exception] = [FENCED] * len(wishes)
        for nth, row in zip(order, rows, strict=True):
            answers[nth] = _answer(row)
        return answers

    async def _record(self, results: Sequence[_Result]) -> list[bool | Exception]:
        order, batch = _by_job(results)
        rows = await self._db.fetch(
            "record_if_leased",
            [one.job_id for one in batch],
            [one.attempt for one in batch],
            [one.key for one in batch],
            [one.result for one in batch],
        )
        answers: list[bool | Exception] = [False] * len(results)
        for row in rows:
            answers[order[row["nth"] - 1]] = True
        return answers


def _by_job(asked: Sequence[_Asked]) -> tuple[list[int], list[_Asked]]:
    """In the order that statements lock in, and the place of each in `asked`."""
    order = sorted(range(len(asked)), key=asked.__getitem__)
    return order, [asked[nth] for nth in order]


def _answer(row: Record) -> IntentAnswer:
    if not row["held"]:
        return FENCED
    if row["granted"]:
        return GRANTED
    return IntentAnswer(Grant.REFUSED, _effect(row) if row["state"] is not None else None)


def _effect(row: Record) -> EffectRow:
    return EffectRow(
        key=row["key"],
        attempt=row["attempt"],
        policy=Policy(row["policy"]),
        args_digest=row["args_digest"],
        state=EffectState(row["state"]),
        result=row["result"],
        calls=row["calls"],
    )
