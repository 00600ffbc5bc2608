"""The promises of `ctx.effect`, on a ledger in memory with the guards of the store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel

from app.domain.effects import IntentAnswer
from app.domain.errors import (
    DatabaseAway,
    EffectMismatch,
    LeaseLost,
    NotRecordable,
    Permanent,
)
from app.domain.states import EffectState, Policy
from tests.unit.effect_desk import Desk
from tests.unit.leased import JOB
from workers.handling.calling import idempotency_key
from workers.handling.memory_ledger import MemoryLedger


async def test_an_effect_on_record_is_read_back_and_not_performed_again(desk: Desk) -> None:
    assert await desk.attempt().effect("mail", desk.send, "hi") == "sent hi"
    assert await desk.attempt().effect("mail", desk.send, "hi") == "sent hi"
    assert desk.calls == ["hi"]


async def test_two_concurrent_calls_of_one_key_perform_it_once(desk: Desk) -> None:
    ctx = desk.attempt()
    answers = await asyncio.gather(*[ctx.effect("mail", desk.send, "hi") for _ in range(20)])
    assert answers == ["sent hi"] * 20
    assert desk.calls == ["hi"]


async def test_different_keys_are_performed_side_by_side(desk: Desk) -> None:
    ctx = desk.attempt()
    together = asyncio.Barrier(3)

    async def meet(n: int) -> int:
        await together.wait()
        return n

    async with asyncio.timeout(10):
        assert await asyncio.gather(*[ctx.effect(f"k{n}", meet, n) for n in range(3)]) == [0, 1, 2]


class Receipt(BaseModel):
    number: int
    tags: set[str] = set()


async def test_a_fresh_result_and_a_recorded_one_cannot_be_told_apart(desk: Desk) -> None:
    handed_out = Receipt(number=7, tags={"a"})

    async def pay() -> Receipt:
        return handed_out

    fresh = await desk.attempt().effect("pay", pay)
    recorded = await desk.attempt().effect("pay", pay)
    assert fresh == recorded == handed_out
    assert fresh is not handed_out
    assert type(fresh) is type(recorded) is Receipt


async def test_a_blocking_function_runs_in_a_thread_of_its_own(desk: Desk) -> None:
    def blocking(text: str) -> str:
        return f"{text} on {threading.current_thread() is threading.main_thread()}"

    assert await desk.attempt().effect("block", blocking, "main") == "main on False"


async def test_the_derived_key_is_the_same_for_every_attempt_and_differs_by_job_and_effect(desk: Desk) -> None:
    seen: list[str] = []

    async def pay(amount: int, *, idempotency_key: str) -> None:
        seen.append(idempotency_key)
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await desk.attempt().effect("pay", pay, 7)
    ctx = desk.attempt()
    with pytest.raises(TimeoutError):
        await ctx.effect("pay", pay, 7)
    assert seen[0] == seen[1] == ctx.idempotency_key("pay")
    assert seen[0] != ctx.idempotency_key("pay again")
    assert seen[0] != idempotency_key(uuid4(), "pay")
    int(seen[0], 16)


async def test_other_arguments_under_a_recorded_key_stop_the_job(desk: Desk) -> None:
    await desk.attempt().effect("mail", desk.send, "hi")
    with pytest.raises(EffectMismatch):
        await desk.attempt().effect("mail", desk.send, "ho")
    assert desk.calls == ["hi"]


async def test_a_renamed_function_is_the_same_effect_and_two_functions_under_one_key_are_a_clash(desk: Desk) -> None:
    async def renamed(text: str) -> str:
        return await desk.send(text)

    await desk.attempt().effect("mail", desk.send, "hi")
    ctx = desk.attempt()
    assert await ctx.effect("mail", renamed, "hi") == "sent hi"
    with pytest.raises(EffectMismatch, match="two functions"):
        await ctx.effect("mail", desk.send, "hi")
    assert desk.calls == ["hi"]


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), "x" * 1_001, object()], ids=lambda value: type(value).__name__)
async def test_what_cannot_be_recorded_is_said_at_the_first_call(desk: Desk, value: object) -> None:
    async def give() -> Any:
        return value

    with pytest.raises(NotRecordable):
        await desk.attempt().effect("give", give)
    assert isinstance(desk.engine.fatal, NotRecordable)


async def test_an_argument_without_a_json_form_is_said_before_the_call(desk: Desk) -> None:
    async def use(client: object) -> None:
        desk.calls.append(client)

    with pytest.raises(NotRecordable, match="closure"):
        await desk.attempt().effect("use", use, object())
    assert desk.calls == []


async def test_a_worker_without_the_lease_can_neither_begin_nor_record_an_effect(desk: Desk) -> None:
    late = desk.attempt()
    go_on, calling = asyncio.Event(), asyncio.Event()

    async def slow(text: str) -> str:
        calling.set()
        await go_on.wait()
        return f"late {text}"

    task = asyncio.create_task(late.effect("mail", slow, "hi"))
    await calling.wait()
    assert await desk.attempt().effect("mail", desk.send, "hi") == "sent hi"
    go_on.set()
    with pytest.raises(LeaseLost):
        await task
    with pytest.raises(LeaseLost):
        await late.effect("another", desk.send, "ho")
    assert desk.calls == ["hi"]
    assert desk.ledger.rows[JOB.id, "mail"].result == '"sent hi"'


async def test_no_call_begins_until_a_heartbeat_is_fresh(desk: Desk) -> None:
    ctx = desk.attempt()
    desk.lease.fresh.clear()
    task = asyncio.create_task(ctx.effect("mail", desk.send, "hi"))
    await desk.lease.waiting.wait()
    assert desk.calls == []
    desk.lease.fresh.set()
    assert await task == "sent hi"


async def test_an_effect_begun_before_a_release_is_finished_and_none_begins_after_it(desk: Desk) -> None:
    ctx = desk.attempt()
    go_on, calling = asyncio.Event(), asyncio.Event()

    async def pay() -> str:
        calling.set()
        await go_on.wait()
        return "paid"

    paying = asyncio.create_task(ctx.effect("pay", pay, policy="at_most_once"))
    await calling.wait()
    desk.lease.releasing = True
    quiet = asyncio.create_task(desk.engine.uncut.none_left())
    late = asyncio.create_task(ctx.effect("pay more", desk.send, "x", policy="at_most_once"))
    await asyncio.sleep(0)
    assert not quiet.done()
    go_on.set()
    await quiet
    assert desk.state("pay") is EffectState.RECORDED
    assert await paying == "paid"
    assert not late.done()
    assert desk.calls == []
    late.cancel()


async def test_a_result_is_recorded_even_when_its_attempt_is_cancelled_meanwhile(desk: Desk) -> None:
    class Slow(MemoryLedger):
        recording, go_on = asyncio.Event(), asyncio.Event()

        async def record(self, job_id: UUID, attempt: int, key: str, result: str) -> bool:
            self.recording.set()
            await self.go_on.wait()
            return await super().record(job_id, attempt, key, result)

    desk.ledger = slow = Slow()
    task = asyncio.create_task(desk.attempt().effect("mail", desk.send, "hi"))
    await slow.recording.wait()
    task.cancel()
    slow.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert desk.state("mail") is EffectState.RECORDED


class Flickering(MemoryLedger):
    """Loses every first answer: before the statement arrived, or after."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: set[tuple[str, int]] = set()

    async def intent(
        self, job_id: UUID, attempt: int, key: str, policy: Policy, args_digest: bytes, *, again: bool = False
    ) -> IntentAnswer:
        answer = await super().intent(job_id, attempt, key, policy, args_digest, again=again)
        self._lose("intent", attempt)
        return answer

    async def record(self, job_id: UUID, attempt: int, key: str, result: str) -> bool:
        recorded = await super().record(job_id, attempt, key, result)
        self._lose("record", attempt)
        return recorded

    async def transact(
        self, job_id: UUID, attempt: int, key: str, args_digest: bytes, call: Callable[[Any], Awaitable[str]]
    ) -> IntentAnswer:
        answer = await super().transact(job_id, attempt, key, args_digest, call)
        self._lose("transact", attempt)
        return answer

    def _lose(self, statement: str, attempt: int) -> None:
        if (statement, attempt) not in self.lost:
            self.lost.add((statement, attempt))
            raise DatabaseAway("the answer was lost")


async def test_a_lost_answer_neither_buries_nor_repeats_an_effect(desk: Desk) -> None:
    desk.ledger = Flickering()
    assert await desk.attempt().effect("pay", desk.send, "7", policy="at_most_once") == "sent 7"
    assert desk.calls == ["7"]

    async def book(connection: Any, text: str) -> str:
        return await desk.send(text)

    assert await desk.attempt().transact("book", book, "8") == "sent 8"
    assert desk.calls == ["7", "8"]


async def test_a_transaction_is_recorded_with_its_work_and_read_back(desk: Desk) -> None:
    async def book(connection: Any, text: str) -> str:
        return await desk.send(text)

    assert await desk.attempt().transact("book", book, "a") == "sent a"
    assert await desk.attempt().transact("book", book, "a") == "sent a"
    with pytest.raises(EffectMismatch):
        await desk.attempt().transact("book", book, "b")
    assert desk.calls == ["a"]


async def test_an_error_of_the_authors_code_in_a_transaction_is_not_taken_for_the_database_being_away(
    desk: Desk,
) -> None:
    async def book(connection: Any) -> str:
        raise FileNotFoundError("ledger.csv")

    with pytest.raises(FileNotFoundError):
        await desk.attempt().transact("book", book)
    assert (JOB.id, "book") not in desk.ledger.rows


@pytest.mark.parametrize("leave", [SystemExit(3), KeyboardInterrupt()], ids=repr)
async def test_an_effect_cannot_end_the_process_of_other_jobs(desk: Desk, leave: BaseException) -> None:
    async def exits() -> None:
        raise leave

    def exits_in_thread() -> None:
        raise leave

    ctx = desk.attempt()
    for key, function in (("loop", exits), ("thread", exits_in_thread)):
        answers = await asyncio.gather(ctx.effect(key, function), return_exceptions=True)
        assert isinstance(answers[0], Permanent)


@pytest.mark.parametrize("key", ["", "x" * 201, "a\0b", "a\nb", "\ud800"], ids=ascii)
async def test_a_key_that_cannot_be_stored_or_shown_is_refused(desk: Desk, key: str) -> None:
    with pytest.raises(Permanent):
        await desk.attempt().effect(key, desk.send, "hi")


async def test_reconciling_needs_a_function_to_reconcile_with(desk: Desk) -> None:
    ctx = desk.attempt()
    with pytest.raises(Permanent):
        await ctx.effect("pay", desk.send, "7", policy="reconcile")
    with pytest.raises(Permanent):
        await ctx.effect("pay", desk.send, "7", reconcile=desk.send)


async def test_an_attempt_that_has_ended_begins_no_effect(desk: Desk) -> None:
    ctx = desk.attempt()
    desk.engine.close()
    with pytest.raises(LeaseLost):
        await ctx.effect("mail", desk.send, "hi")
    assert desk.calls == []
