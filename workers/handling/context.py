"""What an `async def` handler holds in its hand."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Literal, Protocol, TypeVar, TypeVarTuple, overload
from uuid import UUID

from structlog.typing import FilteringBoundLogger

from app import telemetry
from app.domain import jsontext
from app.domain.outcomes import MESSAGE_CHARS_MAX
from app.domain.states import Policy
from workers.effects import EffectEngine
from workers.handling.calling import idempotency_key
from workers.handling.failures import kept_text
from workers.handling.run_lease import RunLease

Args = TypeVarTuple("Args")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

PolicyName = Literal["repeatable", "at_most_once", "reconcile"]


class Keyed(Protocol[*Args, R_co]):
    """A function that also wants the derived idempotency key."""

    def __call__(self, *args: *Args, idempotency_key: str) -> R_co: ...


class Facts:
    """What a handler may know of its attempt, on the loop or in a thread."""

    def __init__(self, lease: RunLease) -> None:
        self._lease = lease
        self._ends = time.monotonic() + lease.job.run_seconds

    @property
    def job_id(self) -> UUID:
        return self._lease.job.id

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1; it only ever grows."""
        return self._lease.job.attempt

    @property
    def log(self) -> FilteringBoundLogger:
        """The log; every line carries job and attempt."""
        return telemetry.log

    def remaining(self) -> float:
        """Seconds until this attempt times out, at least 0."""
        return max(0.0, self._ends - time.monotonic())

    def idempotency_key(self, key: str) -> str:
        """The key an outside service gets for the effect `key`: the same for every attempt, worker and replay."""
        return idempotency_key(self.job_id, key)


class Context(Facts):
    """One attempt of one job, for an `async def` handler."""

    def __init__(self, lease: RunLease, effects: EffectEngine) -> None:
        super().__init__(lease)
        self._effects = effects

    async def progress(self, done: float, total: float, message: str = "") -> None:
        """Shows how far the job is. Best effort: it may be lost, and never fails the job for that."""
        await self._lease.progress(progress_text(done, total, message))

    @overload
    async def effect(
        self,
        key: str,
        fn: Callable[[*Args], Coroutine[Any, Any, R]] | Keyed[*Args, Coroutine[Any, Any, R]],
        *args: *Args,
        policy: PolicyName | Policy = ...,
        reconcile: Callable[..., Any] | None = ...,
    ) -> R: ...
    @overload
    async def effect(
        self,
        key: str,
        fn: Callable[[*Args], R] | Keyed[*Args, R],
        *args: *Args,
        policy: PolicyName | Policy = ...,
        reconcile: Callable[..., Any] | None = ...,
    ) -> R: ...
    async def effect(
        self,
        key: str,
        fn: Callable[..., Any],
        *args: Any,
        policy: PolicyName | Policy = "repeatable",
        reconcile: Callable[..., Any] | None = None,
    ) -> Any:
        """The result of `fn(*args)`, performed once and recorded under `key`; read back on redelivery.

        A `def` runs in a thread. Where `fn` has a parameter `idempotency_key` it gets the derived key.
        `policy` says what to do when it is unknown whether an earlier call happened: call again
        (`repeatable`), stop the job (`at_most_once`), or ask `reconcile(*args)` (`reconcile`), which
        returns the result or raises `NotPerformed`.

        Raises what `fn` raises; `EffectUnknown`, `EffectMismatch`, `NotRecordable`, `LeaseLost`.
        """
        return await self._effects.perform(key, fn, args, Policy(policy), reconcile)

    async def transact(self, key: str, fn: Callable[[Any, *Args], Awaitable[R]], *args: *Args) -> R:
        """The result of `fn(connection, *args)`, in a PostgreSQL transaction that records the effect: exactly once.

        `connection` is an asyncpg connection inside that transaction. It holds the lease: between two statements
        `fn` must not pause for `LEASE_SECONDS`, or the server ends it and all is done anew. Raises as `effect`.
        """
        return await self._effects.transact(key, fn, args)


def progress_text(done: float, total: float, message: str) -> str:
    """Progress as JSON text. Raises `JsonRefused`: a number that is not finite."""
    return jsontext.dump({"done": done, "total": total, "message": kept_text(message[:MESSAGE_CHARS_MAX])})
