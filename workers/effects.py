"""The effects of one attempt: intent before the call, result after it, both under the lease.

    intent committed ─► outside call ─► result committed
          │                  │
          │                  └─ died, was cut off, or raised: the intent stays without a result, and
          │                     whoever holds the lease next goes by the policy
          └─ already on record: the result is read back, nothing is called

What cannot go on (`EffectUnknown`, `EffectMismatch`, `NotRecordable`) is kept as `fatal`: the job stops
with it even where the handler swallows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from pydantic import ValidationError

from app.domain.effects import EffectRow, Grant, IntentAnswer
from app.domain.errors import (
    CallLate,
    EffectError,
    EffectMismatch,
    EffectUnknown,
    JsonRefused,
    LeaseLost,
    NotPerformed,
    NotRecordable,
    Permanent,
    TooLarge,
)
from app.domain.states import EffectState, Policy
from app.failpoints import Point, reach
from workers.handling.attempt_ledger import AttemptLedger
from workers.handling.calling import Caller, Function, Place, idempotency_key, place_of, returned_type, timely
from workers.handling.failures import text_of
from workers.handling.ledger import Ledger
from workers.handling.roundtrip import adapter_of, decode, encode, fingerprint
from workers.handling.run_lease import RunLease
from workers.handling.uncut import Uncut
from workers.handling.wish import Wish, refuse_unusable

Fatal = TypeVar("Fatal", bound=EffectError)
T = TypeVar("T")

RECHECK_SECONDS = 0.2


class EffectEngine:
    """Performs each effect of one attempt as often as its policy allows."""

    def __init__(self, lease: RunLease, ledger: Ledger, caller: Caller, *, effect_bytes_max: int) -> None:
        self._lease = lease
        self._ledger = AttemptLedger(ledger, lease)
        self._caller = caller
        self._effect_bytes_max = effect_bytes_max
        self._turns: dict[str, asyncio.Lock] = {}
        self._done_by: dict[str, Place] = {}
        self._unsure: set[str] = set()
        self._called: set[str] = set()
        self._callers: set[asyncio.Task[Any]] = set()
        self.uncut = Uncut()
        self._closed = False
        self.fatal: EffectError | None = None

    async def perform(
        self, key: str, function: Function, args: tuple[Any, ...], policy: Policy, reconcile: Function | None
    ) -> Any:
        """The result of the effect, from the record or from a call that is then on record.

        Raises what `function` raises; `EffectUnknown`, `EffectMismatch`, `NotRecordable`, `LeaseLost`.
        """
        effect = self._wished(key, function, args, policy, reconcile)
        return await self._in_turn(effect, self._performed)

    async def transact(self, key: str, function: Function, args: tuple[Any, ...]) -> Any:
        """The result of `function(connection, *args)`, committed together with its record.

        Raises as `perform`.
        """
        effect = self._wished(key, function, args, Policy.REPEATABLE, None)

        async def call(connection: Any) -> str:
            value = await self._outside(effect, function, (connection, *args))
            reach(Point.EFFECT_CALLED, key)
            return self._recordable(effect, value)[0]

        async def committed(effect: Wish) -> Any:
            row = self._row(effect, await self._ledger.transact(key, effect.digest, call))
            if row.state is not EffectState.RECORDED:
                raise self._stop(EffectUnknown(f"effect {key} has an intent without a result"))
            return self._read(effect, row)

        return await self._in_turn(effect, committed)

    async def settle(self) -> None:
        """Once the handler has ended: what it left running (`gather` does, when one of its calls raises) ends, too.

        Calls that must not be cut come to their record first.
        """
        self._closed = True
        if self._callers:
            await self.uncut.none_left()
            left = self.close()
            if left:
                await asyncio.wait(left)

    def close(self) -> set[asyncio.Task[Any]]:
        """Ends the attempt for its effects: none begins, and the tasks in the midst of one are cancelled."""
        self._closed = True
        callers = {caller for caller in self._callers if caller is not asyncio.current_task()}
        for caller in callers:
            caller.cancel()
        return callers

    def runs_in(self, task: asyncio.Task[Any]) -> bool:
        """Whether the task is in the midst of an effect of this attempt. From any thread."""
        return task in self._callers

    def _performed(self, effect: Wish) -> Awaitable[Any]:
        return self._ask_outside(effect) if effect.key in self._unsure else self._from_intent(effect)

    async def _from_intent(self, effect: Wish) -> Any:
        while True:
            with self.uncut.held(effect.policy):
                answer = await self._intend(effect)
                if answer.grant is Grant.GRANTED:
                    return await self._call(effect)
                row = self._row(effect, answer)
                if row.state is EffectState.RECORDED:
                    return self._read(effect, row)
                if row.state is EffectState.INTENT and await self._taken_over(effect, row):
                    return await self._ask_outside(effect)
            # Its writer may still be calling; it is certainly gone a lease later.
            await asyncio.sleep(RECHECK_SECONDS)
            await self._may_begin()

    async def _intend(self, effect: Wish) -> IntentAnswer:
        reach(Point.EFFECT_BEFORE_INTENT, effect.key)
        try:
            again = effect.key in self._called
            return await self._ledger.intent(effect.key, effect.policy, effect.digest, again=again)
        except asyncio.CancelledError:
            await self._take_back(effect)
            raise

    async def _call(self, effect: Wish) -> Any:
        """Performs the effect under an intent of ours."""
        try:
            reach(Point.EFFECT_INTENDED, effect.key)
            await self._lease.may_call()
        except BaseException:
            await self._take_back(effect)
            raise
        self._called.add(effect.key)
        try:
            return await self._keep(effect, await self._outside(effect, effect.function, effect.args))
        except NotPerformed:
            await self._ledger.clear(effect.key)
            raise
        except asyncio.CancelledError:
            self._doubt(effect, "was cut off")
            raise
        except Exception as error:
            unknown = self._doubt(effect, f"raised {type(error).__name__} ({text_of(error)})")
            if unknown is not None:
                raise unknown from error
            raise

    async def _take_back(self, effect: Wish) -> None:
        """Nothing was called: an intent left behind would read as an unknown outcome."""
        if effect.policy is not Policy.REPEATABLE:
            await self._ledger.clear(effect.key)

    def _doubt(self, effect: Wish, what: str) -> EffectUnknown | None:
        """The call may have happened: from here on this attempt, too, goes by the policy."""
        if effect.policy is Policy.RECONCILE:
            self._unsure.add(effect.key)
        if effect.policy is not Policy.AT_MOST_ONCE:
            return None
        return self._stop(EffectUnknown(f"effect {effect.key} {what} and may have happened"))

    async def _taken_over(self, effect: Wish, row: EffectRow) -> bool:
        """Whether an intent of another attempt is ours to reconcile now. Raises `EffectUnknown`: never, by policy."""
        if effect.policy is not Policy.RECONCILE:
            raise self._stop(EffectUnknown(f"effect {effect.key} was begun by attempt {row.attempt} and has no result"))
        return await self._ledger.take_over(row)

    async def _ask_outside(self, effect: Wish) -> Any:
        """Reconciles an intent of ours whose call may have happened."""
        assert effect.reconcile is not None
        self._unsure.add(effect.key)
        with self.uncut.held(effect.policy):
            await self._lease.may_call()
            try:
                value = await self._outside(effect, effect.reconcile, effect.args)
            except NotPerformed:
                self._unsure.discard(effect.key)
                self._called.add(effect.key)
                return await self._from_intent(effect)
            return await self._keep(effect, value)

    async def _outside(self, effect: Wish, function: Function, args: tuple[Any, ...]) -> Any:
        derived_key = partial(idempotency_key, self._lease.job.id, effect.key)
        function = timely(function, self._lease.may_call_now)
        while True:
            try:
                return await self._caller.call(effect.key, function, args, derived_key)
            except CallLate:
                await self._lease.may_call()

    async def _keep(self, effect: Wish, value: object) -> Any:
        reach(Point.EFFECT_CALLED, effect.key)
        text, read = self._recordable(effect, value)
        await self._ledger.record(effect.key, text)
        self._unsure.discard(effect.key)
        return read

    def _recordable(self, effect: Wish, value: object) -> tuple[str, Any]:
        try:
            return encode(effect.adapter, value, bytes_max=self._effect_bytes_max)
        except TooLarge as error:
            raise self._stop(NotRecordable(f"the result of effect {effect.key} has {error}")) from error
        except (JsonRefused, ValidationError) as error:
            raise self._stop(NotRecordable(f"the result of effect {effect.key}: {text_of(error)}")) from error

    def _read(self, effect: Wish, row: EffectRow) -> Any:
        assert row.result is not None
        try:
            return decode(effect.adapter, row.result)
        except ValidationError as error:
            raise Permanent(f"effect {effect.key} is on record as another type: {text_of(error)}") from error

    def _row(self, effect: Wish, answer: IntentAnswer) -> EffectRow:
        """What is on record. Raises `LeaseLost`, and `EffectMismatch` for other arguments."""
        if answer.grant is Grant.FENCED:
            raise LeaseLost("the lease is gone")
        assert answer.row is not None
        if answer.row.args_digest != effect.digest:
            raise self._stop(EffectMismatch(f"effect {effect.key} is on record with other arguments"))
        return answer.row

    def _wished(
        self, key: str, function: Function, args: tuple[Any, ...], policy: Policy, reconcile: Function | None
    ) -> Wish:
        refuse_unusable(key, policy, reconcile)
        try:
            digest = fingerprint(args)
        except NotRecordable as error:
            raise self._stop(NotRecordable(f"effect {key}: {error}")) from error
        return Wish(key, function, args, policy, reconcile, digest, adapter_of(returned_type(function)))

    async def _may_begin(self) -> None:
        if self.fatal is not None:
            raise self.fatal
        if self._closed:
            raise LeaseLost("the attempt has ended")
        if self._lease.releasing:
            # The run is about to be given back: it waits here to be cancelled instead of beginning more.
            await asyncio.get_running_loop().create_future()

    async def _in_turn(self, effect: Wish, perform: Callable[[Wish], Awaitable[T]]) -> T:
        """One at a time for each key, so that two concurrent calls of one key perform it once."""
        async with self._turns.setdefault(effect.key, asyncio.Lock()):
            await self._may_begin()
            place = place_of(effect.function)
            if self._done_by.get(effect.key, place) != place:
                raise self._stop(EffectMismatch(f"effect {effect.key} names two functions in one handler"))
            caller = asyncio.current_task()
            assert caller is not None
            self._callers.add(caller)
            try:
                result = await perform(effect)
                reach(Point.EFFECT_RECORDED, effect.key)
            finally:
                self._callers.discard(caller)
            self._done_by[effect.key] = place
            return result

    def _stop(self, error: Fatal) -> Fatal:
        self.fatal = self.fatal or error
        return error
