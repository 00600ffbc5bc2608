"""What happens to an effect whose outcome is unknown, by its policy."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from uuid import UUID

import pytest

from app.domain.errors import (
    EffectUnknown,
    NotPerformed,
)
from app.domain.states import EffectState
from tests.unit.effect_desk import Desk, cut_off, until
from tests.unit.leased import JOB
from workers.handling.calling import Caller
from workers.handling.context import PolicyName
from workers.handling.memory_ledger import MemoryLedger
from workers.handling.threads import Threads


async def test_a_repeatable_effect_of_unknown_outcome_is_repeated_and_counted(desk: Desk) -> None:
    with pytest.raises(ValueError, match="line went dead"):
        await desk.attempt().effect("mail", desk.fail, "hi")
    assert await desk.attempt().effect("mail", desk.send, "hi") == "sent hi"
    assert desk.ledger.rows[JOB.id, "mail"].calls == 2


async def test_an_at_most_once_effect_that_was_cut_off_is_never_called_again(desk: Desk) -> None:
    await cut_off(desk.attempt().effect("pay", desk.hang, "7", policy="at_most_once"), desk)
    for _ in range(2):
        with pytest.raises(EffectUnknown):
            await desk.attempt().effect("pay", desk.send, "7", policy="at_most_once")
    assert desk.calls == ["7"]
    assert desk.state("pay") is EffectState.INTENT


async def test_an_at_most_once_effect_that_raised_stops_its_job_at_once(desk: Desk) -> None:
    ctx = desk.attempt()
    with pytest.raises(EffectUnknown, match="ValueError"):
        await ctx.effect("pay", desk.fail, "7", policy="at_most_once")
    with pytest.raises(EffectUnknown):
        await ctx.effect("anything else", desk.send, "x")
    assert isinstance(desk.engine.fatal, EffectUnknown)
    assert desk.calls == ["7"]


async def test_a_handler_that_gives_up_waiting_does_not_get_a_second_call_at_most_once(desk: Desk) -> None:
    ctx = desk.attempt()
    await cut_off(ctx.effect("pay", desk.hang, "7", policy="at_most_once"), desk)
    with pytest.raises(EffectUnknown):
        await ctx.effect("pay", desk.send, "7", policy="at_most_once")
    assert desk.calls == ["7"]


@pytest.mark.parametrize("policy", ["at_most_once", "reconcile"])
async def test_a_call_whose_record_failed_is_not_made_again_by_its_own_attempt(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, policy: PolicyName
) -> None:
    async def fail(*_: object) -> bool:
        raise RuntimeError("the record failed")

    asked: list[str] = []

    async def ask(text: str) -> str:
        asked.append(text)
        return f"found {text}"

    reconcile = ask if policy == "reconcile" else None
    ctx = desk.attempt()
    with monkeypatch.context() as broken:
        broken.setattr(desk.ledger, "record", fail)
        with pytest.raises((RuntimeError, EffectUnknown)):
            await ctx.effect("pay", desk.send, "7", policy=policy, reconcile=reconcile)
    with suppress(EffectUnknown):
        await ctx.effect("pay", desk.send, "7", policy=policy, reconcile=reconcile)

    assert desk.calls == ["7"]
    assert asked == (["7"] if policy == "reconcile" else [])


async def test_a_call_that_certainly_did_not_happen_may_be_made_again(desk: Desk) -> None:
    with pytest.raises(NotPerformed):
        await desk.attempt().effect("pay", desk.refuse, "7", policy="at_most_once")
    assert desk.state("pay") is EffectState.CLEARED
    assert await desk.attempt().effect("pay", desk.send, "7", policy="at_most_once") == "sent 7"


async def test_an_intent_cut_off_before_its_call_leaves_nothing_unknown(desk: Desk) -> None:
    ctx = desk.attempt()
    desk.lease.fresh.clear()
    task = asyncio.create_task(ctx.effect("pay", desk.send, "7", policy="at_most_once"))
    await desk.lease.waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert desk.state("pay") is EffectState.CLEARED
    assert await desk.attempt().effect("pay", desk.send, "7", policy="at_most_once") == "sent 7"


async def test_a_reconciled_effect_that_happened_is_recorded_without_a_call(desk: Desk) -> None:
    await cut_off(desk.attempt().effect("pay", desk.hang, "7", policy="reconcile", reconcile=desk.fail), desk)

    async def found(text: str) -> str:
        return f"found {text}"

    paid = await desk.attempt().effect("pay", desk.send, "7", policy="reconcile", reconcile=found)
    assert paid == "found 7"
    assert desk.calls == ["7"]
    assert desk.state("pay") is EffectState.RECORDED


async def test_a_reconciled_effect_that_did_not_happen_is_performed(desk: Desk) -> None:
    await cut_off(desk.attempt().effect("pay", desk.hang, "7", policy="reconcile", reconcile=desk.refuse), desk)
    paid = await desk.attempt().effect("pay", desk.send, "7", policy="reconcile", reconcile=desk.refuse)
    assert paid == "sent 7"
    assert desk.calls == ["7", "7", "7"]  # cut off, asked, performed


async def test_a_reconciled_effect_that_raised_is_asked_about_within_its_attempt_too(desk: Desk) -> None:
    async def found(text: str) -> str:
        return f"found {text}"

    ctx = desk.attempt()
    with pytest.raises(ValueError, match="line went dead"):
        await ctx.effect("pay", desk.fail, "7", policy="reconcile", reconcile=found)
    assert await ctx.effect("pay", desk.fail, "7", policy="reconcile", reconcile=found) == "found 7"
    assert desk.calls == ["7"]


async def test_an_intent_whose_writer_may_still_be_calling_is_waited_for(desk: Desk) -> None:
    class WriterAlive(MemoryLedger):
        alive = 2

        async def take_over(self, job_id: UUID, attempt: int, key: str, seen_attempt: int) -> bool:
            self.alive -= 1
            return self.alive < 0 and await super().take_over(job_id, attempt, key, seen_attempt)

    desk.ledger = WriterAlive()
    await cut_off(desk.attempt().effect("pay", desk.hang, "7", policy="reconcile", reconcile=desk.refuse), desk)
    await desk.attempt().effect("pay", desk.send, "7", policy="reconcile", reconcile=desk.refuse)
    assert desk.ledger.alive == -1


async def test_a_call_that_waited_for_its_thread_until_the_worker_was_cut_off_does_not_begin(desk: Desk) -> None:
    """The heartbeat was fresh when the call was asked for; by the time it has a thread others may run the job."""
    desk.caller = Caller(Threads(1))
    ctx, begun, go_on = desk.attempt(), threading.Event(), threading.Event()

    def hold(text: str) -> str:
        begun.set()
        assert go_on.wait(30)
        return text

    def note(text: str) -> str:
        desk.calls.append(text)
        return text

    first = asyncio.create_task(ctx.effect("first", hold, "hi"))
    await until(begun.is_set)
    second = asyncio.create_task(ctx.effect("second", note, "ho"))
    await until(lambda: (JOB.id, "second") in desk.ledger.rows)
    for _ in range(20):
        await asyncio.sleep(0)  # its intent is answered, and it waits for the thread
    desk.lease.waiting.clear()
    desk.lease.fresh.clear()
    go_on.set()
    assert await first == "hi"
    await until(desk.lease.waiting.is_set)
    assert desk.calls == []

    desk.lease.fresh.set()
    assert await second == "ho"
    assert desk.calls == ["ho"]
