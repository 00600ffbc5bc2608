"""Attempts that somebody else ends: their time, a lost lease, a shutdown."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from app.domain.errors import LeaseLost, Transient
from app.domain.outcomes import Done, Gone, Release, Retry
from app.domain.states import AttemptEnd, Reason
from outlast import Context, SyncContext, task
from tests.unit.bench import Bench, reason_of, until
from tests.unit.leased import JOB_ID


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


async def test_a_thread_that_waits_to_be_released_is_set_free_when_its_time_is_up(bench: Bench) -> None:
    @task("executor.parked")
    def parked(ctx: SyncContext, given: Any) -> None:
        ctx.effect("more", lambda: "x")

    running, lease = bench.start(parked, run_seconds=0.05)
    lease.releasing = True
    assert isinstance(await running, Retry)
    await until(lambda: bench.executor.stragglers == 0)
    assert bench.ledger.rows == {}


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
    lease.lost = True
    running.attempt.interrupt()
    assert await running == Gone()
    assert cleaned_up == ["yes"]


async def test_a_shutdown_releases_the_job(bench: Bench) -> None:
    running, lease = bench.start(hang)
    await asyncio.sleep(0)
    lease.releasing = True
    running.attempt.interrupt()
    assert await running == Release("shutdown")


async def test_a_release_waits_for_a_call_in_flight_and_its_record(bench: Bench) -> None:
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
    lease.releasing = True
    running.attempt.interrupt()
    done, _ = await asyncio.wait({running.ended}, timeout=0.05)
    assert not done
    go_on.set()
    await running
    assert bench.ledger.rows[JOB_ID, "pay"].result == '"paid"'


async def test_a_handler_that_has_ended_when_its_release_comes_has_ended_as_it_did(bench: Bench) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    @task("executor.just-ended")
    async def just_ended(ctx: Context, given: Any) -> str:
        begun.set()
        await go_on.wait()
        return "paid"

    running, lease = bench.start(just_ended)
    await begun.wait()
    go_on.set()
    await asyncio.sleep(0)  # the handler ends here; what waits for it has not been woken yet
    lease.releasing = True
    running.attempt.interrupt()
    assert await running == Done('"paid"')


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
    lease.releasing = True
    running.attempt.interrupt()
    await asyncio.sleep(0.01)
    assert not running.ended.done()
    running.attempt.interrupt()
    assert await running == Release("shutdown")


async def test_a_handler_that_cancels_every_task_it_finds_costs_its_neighbours_nothing(bench: Bench) -> None:
    @task("executor.cancels-all")
    async def cancels_all(ctx: Context, given: Any) -> str:
        for other in asyncio.all_tasks() - {asyncio.current_task(), tests_own}:
            other.cancel()
        return "done"

    tests_own = asyncio.current_task()
    neighbour, _ = bench.start(hang)
    interrupted, lease = bench.start(hang)
    await asyncio.sleep(0)
    lease.lost = True
    interrupted.attempt.interrupt()
    running, _ = bench.start(cancels_all)

    assert await running == Done('"done"')
    assert isinstance(await neighbour, Release)
    assert await interrupted == Gone()


@pytest.mark.parametrize("how", ["raises", "cancels"])
async def test_a_handler_that_cancels_itself_is_dead(bench: Bench, how: str) -> None:
    @task("executor.cancels-itself")
    async def cancels_itself(ctx: Context, given: Any) -> None:
        if how == "raises":
            raise asyncio.CancelledError
        current = asyncio.current_task()
        assert current is not None
        current.cancel()
        await asyncio.sleep(0)

    assert reason_of(await bench.run(cancels_itself)) is Reason.PERMANENT_ERROR


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
    done, _ = await asyncio.wait({running.ended}, timeout=0.05)
    assert not done
    go_on.set()
    assert isinstance(await running, Retry)
    assert ended == ["cut off"]
    assert bench.ledger.rows[JOB_ID, "pay"].result == '"paid"'
