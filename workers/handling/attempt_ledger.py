"""The ledger as one attempt uses it: bound to its lease, patient with PostgreSQL, not cut in mid-sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from app.domain.effects import EffectRow, IntentAnswer
from app.domain.errors import DatabaseAway, LeaseLost
from app.domain.states import Policy
from workers.handling.ledger import Ledger
from workers.handling.run_lease import RunLease

T = TypeVar("T")

FIRST_PAUSE_SECONDS = 0.05
PAUSE_SECONDS_MAX = 1.0
LAST_WORD_SECONDS = 2.0


class _Broke(Exception):
    """The function of a transaction raised, and its connection is well."""


class AttemptLedger:
    """A statement whose answer was lost is sent again: its guard, the lease, makes that harmless.

    A statement that was sent comes to its end although its run is cancelled meanwhile: what happened
    outside is to be on record. All may wait as long as PostgreSQL is away, and raise nothing of it.
    """

    def __init__(self, ledger: Ledger, lease: RunLease) -> None:
        self._ledger = ledger
        self._lease = lease
        self._id, self._attempt = lease.job.id, lease.job.attempt

    async def intent(self, key: str, policy: Policy, args_digest: bytes, *, again: bool) -> IntentAnswer:
        """Commits the intent to call, before the call. `again`: this attempt has called before."""
        return await self._to_its_end(
            lambda: self._ledger.intent(self._id, self._attempt, key, policy, args_digest, again=again)
        )

    async def record(self, key: str, result: str) -> None:
        """Commits the result (JSON text). Raises `LeaseLost`: nothing was written."""
        kept = await self._to_its_end(lambda: self._ledger.record(self._id, self._attempt, key, result))
        if not kept:
            raise LeaseLost(f"effect {key} was performed, and the lease was gone before its record")

    async def clear(self, key: str) -> None:
        """Takes the intent back: the call certainly did not happen."""
        await self._to_its_end(lambda: self._ledger.clear(self._id, self._attempt, key))

    async def take_over(self, row: EffectRow) -> bool:
        """Makes the intent of another attempt ours. False: its writer may still be calling, or it moved."""
        return await _insisting(lambda: self._ledger.take_over(self._id, self._attempt, row.key, row.attempt))

    async def transact(self, key: str, args_digest: bytes, call: Callable[[Any], Awaitable[str]]) -> IntentAnswer:
        """Runs `call(connection)` and its record in one transaction. Raises what `call` raises."""

        async def guarded(connection: Any) -> str:
            try:
                return await call(connection)
            except Exception as error:
                if connection is not None and connection.is_closed():
                    raise
                # The store would take an OSError of the author's code for its own server being away.
                raise _Broke from error

        try:
            return await _insisting(lambda: self._ledger.transact(self._id, self._attempt, key, args_digest, guarded))
        except _Broke as broke:
            raise broke.__cause__ or broke from None

    async def _to_its_end(self, statement: Callable[[], Awaitable[T]]) -> T:
        try:
            try:
                return await statement()
            except DatabaseAway:
                return await _insisting(statement)
        except asyncio.CancelledError:
            if not self._lease.lost:
                # Whether it has arrived nobody knows; sent again it does no harm.
                with suppress(TimeoutError):
                    await asyncio.wait_for(_insisting(statement), LAST_WORD_SECONDS)
            raise


async def _insisting(statement: Callable[[], Awaitable[T]]) -> T:
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return await statement()
        except DatabaseAway:
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)
