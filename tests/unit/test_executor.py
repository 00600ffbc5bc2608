"""One attempt of a job, from its input to what becomes of it."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from app.domain.errors import LeaseLost, Permanent, Throttled, Transient
from app.domain.outcomes import Bury, Done, Gone, Outcome, Release, Retry
from app.domain.states import AttemptEnd, Reason
from app.settings import Settings
from outlast import Context, SyncContext, task
from tests.unit.leased import JOB_ID, FakeLease, a_job
from workers.executor import Executor
from workers.memory_ledger import MemoryLedger
from workers.registry import task_of

SETTINGS = Settings(max_result_bytes=100, suspect_seconds=0.4, heartbeat_seconds=0.1, lease_seconds=1, max_releases=3)


class Bench:
    """Runs handlers on jobs, as a worker does."""

    def __init__(self) -> None:
        self.ledger = MemoryLedger()
        self.ledger.held = 1
        self.executor = Executor(SETTINGS, self.ledger, random=lambda: 0.5)

    def start(self, handler: Callable[..., Any], **job: Any) -> tuple[asyncio.Task[Outcome], FakeLease]:
        lease = FakeLease(a_job(**job))
        return asyncio.create_task(self.executor.execute(task_of(handler), lease)), lease

    async def run(self, handler: Callable[..., Any], **job: Any) -> Outcome:
        running, _ = self.start(handler, **job)
        return await running


@pytest.fixture
def bench() -> Bench:
    return Bench()


def reason_of(outcome: Outcome) -> Reason:
    assert isinstance(outcome, Bury)
    return outcome.reason


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


class Order(BaseModel):
    amount: int

    @field_validator("amount")
    @classmethod
    def _is_known(cls, amount: int) -> int:
        return 100 // amount


class Bill(BaseModel):
    total: int


@task("executor.bill")
async def bill(ctx: Context, order: Order) -> Bill:
    return Bill(total=order.amount)


async def test_a_handler_gets_its_input_as_its_model_and_its_result_is_done(bench: Bench) -> None:
    assert await bench.run(bill, input='{"amount": 4}') == Done('{"total":25}')


async def test_an_input_its_model_refuses_is_dead_without_a_start(bench: Bench) -> None:
    for text in ('{"amount": "marker-81c"}', "{}", "[]"):
        outcome = await bench.run(bill, input=text)
        assert reason_of(outcome) is Reason.INVALID_INPUT
        assert isinstance(outcome, Bury)
        assert "marker" not in outcome.failure.message


async def test_a_validator_that_breaks_is_an_invalid_input_too(bench: Bench) -> None:
    assert reason_of(await bench.run(bill, input='{"amount": 0}')) is Reason.INVALID_INPUT


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, b"x", object(), "\0", "\ud800", {1: 2}], ids=ascii)
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


@task("executor.hang")
async def hang(ctx: Context, given: Any) -> None:
    await asyncio.get_running_loop().create_future()


async def test_an_attempt_out_of_time_is_retried_and_then_dead(bench: Bench) -> None:
    outcome = await bench.run(hang, run_seconds=0.05)
    assert isinstance(outcome, Retry)
    assert outcome.end is AttemptEnd.TIMED_OUT
    assert reason_of(await bench.run(hang, run_seconds=0.05, retries=2)) is Reason.TIMED_OUT
    assert reason_of(await bench.run(hang, run_seconds=0.05, deadline_binds=True)) is Reason.EXPIRED
    assert bench.executor.stragglers == 0


async def test_a_result_returned_after_the_time_out_does_not_count(bench: Bench) -> None:
    @task("executor.late")
    async def late(ctx: Context, given: Any) -> str:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            return "late"
        return "never"

    outcome = await bench.run(late, run_seconds=0.05)
    assert isinstance(outcome, Retry)
    assert outcome.end is AttemptEnd.TIMED_OUT


async def test_a_handler_that_swallows_cancellation_holds_up_nobody_and_keeps_its_slot(bench: Bench) -> None:
    go_on = asyncio.Event()
    after: list[str] = []

    @task("executor.stubborn")
    async def stubborn(ctx: Context, given: Any) -> None:
        while not go_on.is_set():
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                continue
        try:
            await ctx.effect("late", lambda: "x")
        except LeaseLost:
            after.append("refused")

    outcome = await bench.run(stubborn, run_seconds=0.05)
    assert isinstance(outcome, Retry)
    assert bench.executor.stragglers == 1
    go_on.set()
    await until(lambda: bench.executor.stragglers == 0)
    assert after == ["refused"]
    assert bench.ledger.rows == {}


@pytest.fixture
def release_threads() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


async def test_a_thread_out_of_time_keeps_its_slot_and_can_do_no_more(
    bench: Bench, release_threads: threading.Event
) -> None:
    after: list[str] = []

    @task("executor.blocking")
    def blocking(ctx: SyncContext, given: Any) -> str:
        release_threads.wait(10)
        for call in (lambda: ctx.effect("late", lambda: "x"), lambda: ctx.progress(1, 1)):
            try:
                call()
            except LeaseLost:
                after.append("refused")
        return "late"

    outcome = await bench.run(blocking, run_seconds=0.05)
    assert isinstance(outcome, Retry)
    assert outcome.end is AttemptEnd.TIMED_OUT
    assert bench.executor.stragglers == 1
    release_threads.set()
    await until(lambda: bench.executor.stragglers == 0)
    assert after == ["refused", "refused"]
    assert bench.ledger.rows == {}


async def test_a_thread_that_waits_for_its_effect_is_set_free_when_its_time_is_up(bench: Bench) -> None:
    async def never() -> None:
        await asyncio.get_running_loop().create_future()

    @task("executor.waiting")
    def waiting(ctx: SyncContext, given: Any) -> None:
        ctx.effect("never", never)

    assert isinstance(await bench.run(waiting, run_seconds=0.05), Retry)
    await until(lambda: bench.executor.stragglers == 0)


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


async def test_a_lost_lease_cancels_the_handler_and_writes_nothing(bench: Bench) -> None:
    cleaned_up: list[str] = []
    begun = asyncio.Event()

    @task("executor.cleans-up")
    async def cleans_up(ctx: Context, given: Any) -> None:
        try:
            begun.set()
            await asyncio.get_running_loop().create_future()
        finally:
            await asyncio.sleep(0)
            cleaned_up.append("yes")

    running, lease = bench.start(cleans_up)
    await begun.wait()
    lease.lost.set()
    running.cancel()
    assert await running == Gone()
    assert cleaned_up == ["yes"]


async def test_a_shutdown_releases_the_job(bench: Bench) -> None:
    running, lease = bench.start(hang)
    await asyncio.sleep(0)
    lease.releasing.set()
    running.cancel()
    assert await running == Release("shutdown")


async def test_a_handler_that_ends_while_a_release_waits_has_ended_as_it_did(bench: Bench) -> None:
    paying, go_on = asyncio.Event(), asyncio.Event()

    async def pay() -> str:
        paying.set()
        await go_on.wait()
        return "paid"

    @task("executor.pays")
    async def pays(ctx: Context, given: Any) -> str:
        return await ctx.effect("pay", pay, policy="at_most_once")

    running, lease = bench.start(pays)
    await paying.wait()
    lease.releasing.set()
    running.cancel()
    await asyncio.sleep(0)
    assert not running.done()
    go_on.set()
    assert await running in (Done('"paid"'), Release("shutdown"))
    assert next(iter(bench.ledger.rows.values())).result == '"paid"'


async def test_a_second_cancel_does_not_wait_for_the_call_in_flight(bench: Bench) -> None:
    paying = asyncio.Event()

    async def pay() -> None:
        paying.set()
        await asyncio.get_running_loop().create_future()

    @task("executor.pays-slowly")
    async def pays_slowly(ctx: Context, given: Any) -> None:
        await ctx.effect("pay", pay, policy="at_most_once")

    running, lease = bench.start(pays_slowly)
    await paying.wait()
    lease.releasing.set()
    running.cancel()
    await asyncio.sleep(0.01)
    assert not running.done()
    running.cancel()
    assert await running == Release("shutdown")


async def test_a_cancel_without_a_word_is_passed_on(bench: Bench) -> None:
    running, _ = bench.start(hang)
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_calls_a_handler_leaves_behind_end_with_its_attempt(bench: Bench) -> None:
    go_on, both = asyncio.Event(), asyncio.Barrier(3)
    ended: list[str] = []

    async def pay() -> str:
        await both.wait()
        await go_on.wait()
        return "paid"

    async def wait_for_ever() -> None:
        try:
            await both.wait()
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            ended.append("cut off")
            raise

    @task("executor.leaves-behind")
    async def leaves_behind(ctx: Context, given: Any) -> None:
        left = [ctx.effect("pay", pay, policy="at_most_once"), ctx.effect("wait", wait_for_ever)]
        tasks = [asyncio.ensure_future(one) for one in left]
        await both.wait()
        assert not any(one.done() for one in tasks)
        raise Transient("later")

    running, _ = bench.start(leaves_behind)
    await until(lambda: len(bench.ledger.rows) == 2)
    done, _ = await asyncio.wait({running}, timeout=0.05)
    assert not done
    go_on.set()
    assert isinstance(await running, Retry)
    assert ended == ["cut off"]
    assert bench.ledger.rows[JOB_ID, "pay"].result == '"paid"'


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
