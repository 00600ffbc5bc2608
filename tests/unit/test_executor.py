"""One attempt of a job, from its input to what becomes of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, field_serializer, field_validator

from app.domain.errors import LeaseLost, Permanent, Throttled, Transient
from app.domain.outcomes import Bury, Done, Gone, Retry
from app.domain.states import AttemptEnd, Reason
from outlast import Context, SyncContext, task
from tests.unit.bench import Bench, reason_of


class Order(BaseModel):
    amount: int

    @field_validator("amount")
    @classmethod
    def _is_known(cls, amount: int) -> int:
        return 100 // amount if amount >= 0 else sys.exit(0)


class Bill(BaseModel):
    total: int

    @field_serializer("total")
    def _is_payable(self, total: int) -> int:
        return total if total < 100 else sys.exit(0)


@task("executor.bill")
async def bill(ctx: Context, order: Order) -> Bill:
    return Bill(total=order.amount)


async def test_a_handler_gets_its_input_as_its_model_and_its_result_is_done(bench: Bench) -> None:
    assert await bench.run(bill, input='{"amount": 4}') == Done('{"total":25}')


async def test_a_serializer_that_breaks_is_an_invalid_output(bench: Bench) -> None:
    assert reason_of(await bench.run(bill, input='{"amount": 1}')) is Reason.INVALID_OUTPUT


async def test_who_a_task_works_for_is_known_within_its_handler_and_its_effects(bench: Bench) -> None:
    async def whose() -> str | None:
        current = asyncio.current_task()
        assert current is not None
        owner = bench.executor.owner_of(current)
        return owner and owner[1]

    @task("executor.whose")
    async def handler(ctx: Context, given: Any) -> list[str | None]:
        return [await whose(), *await asyncio.gather(ctx.effect("a", whose), ctx.effect("b", whose))]

    assert await bench.run(handler) == Done('["executor.whose","executor.whose","executor.whose"]')
    assert await whose() is None


async def test_an_input_its_model_refuses_is_dead_without_a_start(bench: Bench) -> None:
    for text in ('{"amount": "marker-81c"}', "{}", "[]"):
        outcome = await bench.run(bill, input=text)
        assert reason_of(outcome) is Reason.INVALID_INPUT
        assert isinstance(outcome, Bury)
        assert "marker" not in outcome.failure.message


async def test_a_validator_that_breaks_is_an_invalid_input_too(bench: Bench) -> None:
    for amount in (0, -1):
        assert reason_of(await bench.run(bill, input=f'{{"amount": {amount}}}')) is Reason.INVALID_INPUT


@pytest.mark.parametrize(
    "value",
    [float("nan"), {1, 2}, b"x", object(), "\0", "\ud800", {1: 2}],
    ids=lambda value: ascii(value).partition(" at ")[0],
)
async def test_a_result_that_is_no_json_is_dead_and_never_another_value(bench: Bench, value: object) -> None:
    @task(f"executor.value-{id(value)}")
    async def handler(ctx: Context, given: Any) -> Any:
        return value

    assert reason_of(await bench.run(handler)) is Reason.INVALID_OUTPUT


@task("executor.liar")
async def liar(ctx: Context, given: Any) -> Bill:
    return "no bill"  # type: ignore[return-value]  # what is tested


async def test_a_result_of_another_type_than_declared_is_dead(bench: Bench) -> None:
    assert reason_of(await bench.run(liar)) is Reason.INVALID_OUTPUT


@task("executor.long")
async def long(ctx: Context, size: int) -> str:
    return "x" * size


async def test_a_result_over_the_limit_is_dead_and_one_at_the_limit_is_done(bench: Bench) -> None:
    assert isinstance(await bench.run(long, input="98"), Done)
    assert reason_of(await bench.run(long, input="99")) is Reason.RESULT_TOO_LARGE


def raising(error: BaseException) -> Callable[..., Any]:
    @task(f"executor.raising-{id(error)}")
    async def handler(ctx: Context, given: Any) -> None:
        raise error

    return handler


async def test_what_a_handler_raises_decides_what_becomes_of_its_job(bench: Bench) -> None:
    assert reason_of(await bench.run(raising(Permanent("never")))) is Reason.PERMANENT_ERROR
    assert reason_of(await bench.run(raising(ValueError("a bug")))) is Reason.PERMANENT_ERROR
    again = await bench.run(raising(Transient("later", retry_after=9)))
    assert isinstance(again, Retry)
    assert (again.delay_seconds, again.charged, again.end) == (9.5, True, AttemptEnd.FAILED)
    assert reason_of(await bench.run(raising(Transient("later")), retries=2)) is Reason.RETRIES_EXHAUSTED
    throttled = await bench.run(raising(Throttled("quota")), retries=2)
    assert isinstance(throttled, Retry)
    assert not throttled.charged
    assert reason_of(await bench.run(raising(Throttled("quota")), retries=2, releases=3)) is Reason.RETRIES_EXHAUSTED
    assert await bench.run(raising(LeaseLost("gone"))) == Gone()


def endless(depth: int) -> int:
    return endless(depth + 1) + 1


@task("executor.recursion")
async def recursion(ctx: Context, given: Any) -> int:
    return endless(0)


@task("executor.exit-in-thread")
def exit_in_thread(ctx: SyncContext, given: Any) -> None:
    sys.exit(3)


async def test_no_handler_ends_the_process_it_shares(bench: Bench) -> None:
    for handler in (raising(SystemExit(3)), raising(KeyboardInterrupt()), raising(GeneratorExit()), recursion):
        assert reason_of(await bench.run(handler)) is Reason.PERMANENT_ERROR
    assert reason_of(await bench.run(exit_in_thread)) is Reason.PERMANENT_ERROR


async def test_a_handler_that_cancels_itself_is_a_bug_not_a_shutdown(bench: Bench) -> None:
    assert reason_of(await bench.run(raising(asyncio.CancelledError()))) is Reason.PERMANENT_ERROR


@task("executor.sync")
def sync_steps(ctx: SyncContext, given: int) -> list[Any]:
    async def on_the_loop(n: int) -> int:
        return n + 1

    def in_a_thread(n: int) -> int:
        return n + 2

    async def in_a_transaction(connection: Any, n: int) -> int:
        return n + 3

    ctx.progress(1, 2, "half")
    ctx.log.debug("a line of a handler")
    return [
        ctx.effect("a", on_the_loop, given),
        ctx.effect("b", in_a_thread, given),
        ctx.transact("c", in_a_transaction, given),
        ctx.attempt,
        ctx.remaining() > 0,
        ctx.idempotency_key("a") != ctx.idempotency_key("b"),
    ]


async def test_a_blocking_handler_has_the_same_names_at_hand(bench: Bench) -> None:
    running, lease = bench.start(sync_steps, input="1")
    assert await running == Done("[2,3,4,1,true,true]")
    assert lease.shown == [{"done": 1, "total": 2, "message": "half"}]


async def test_progress_keeps_what_json_can_keep(bench: Bench) -> None:
    @task("executor.progress")
    async def handler(ctx: Context, given: Any) -> None:
        await ctx.progress(1, 3, "a\0b" + "x" * 10_000)

    running, lease = bench.start(handler)
    assert await running == Done("null")
    assert lease.shown[0]["message"].startswith("a\ufffdb")
    assert len(lease.shown[0]["message"]) == 2_000


async def test_a_swallowed_effect_that_cannot_go_on_still_stops_the_job(bench: Bench) -> None:
    async def fails() -> None:
        raise ValueError("no answer")

    @task("executor.swallows")
    async def swallows(ctx: Context, given: Any) -> str:
        try:
            await ctx.effect("pay", fails, policy="at_most_once")
        except Exception:
            return "all is well"
        return "paid"

    assert reason_of(await bench.run(swallows)) is Reason.EFFECT_UNKNOWN
