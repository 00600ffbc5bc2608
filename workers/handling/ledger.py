"""Where effects are on record: what the effect engine asks of its store.

`workers.effects` is written against this protocol; PostgreSQL is behind it in a worker, a dictionary
in `outlast.testing`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol
from uuid import UUID

from app.domain.effects import EffectRow, Grant, IntentAnswer
from app.domain.states import Policy

__all__ = ["EffectRow", "Grant", "IntentAnswer", "Ledger"]


class Ledger(Protocol):
    """The effects of jobs, guarded by their leases. Every method may raise `DatabaseAway`."""

    async def intent(
        self, job_id: UUID, attempt: int, key: str, policy: Policy, args_digest: bytes, *, again: bool = False
    ) -> IntentAnswer:
        """Commits the intent to call, before the call. `again`: this attempt has called before, and it counts."""
        ...

    async def record(self, job_id: UUID, attempt: int, key: str, result: str) -> bool:
        """Commits the result (JSON text). False: the lease is gone, nothing was written."""
        ...

    async def clear(self, job_id: UUID, attempt: int, key: str) -> bool:
        """Takes my intent back: the call certainly did not happen. False: the lease is gone."""
        ...

    async def take_over(self, job_id: UUID, attempt: int, key: str, seen_attempt: int) -> bool:
        """Makes an intent of `seen_attempt` mine, once its writer is certainly gone.

        False: it moved meanwhile, its writer may still be alive, or the lease is gone.
        """
        ...

    async def transact(
        self,
        job_id: UUID,
        attempt: int,
        key: str,
        args_digest: bytes,
        call: Callable[[Any], Awaitable[str]],
    ) -> IntentAnswer:
        """Runs `call(connection)` and records the JSON text it returns, in one transaction.

        `GRANTED` carries the recorded row; `REFUSED` the row that was there before.
        """
        ...
