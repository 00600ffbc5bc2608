"""The effect engine on PostgreSQL: leases, intents and records as a worker writes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from app.domain.effects import Grant
from app.domain.errors import EffectMismatch, EffectUnknown, LeaseLost
from app.domain.leased import LeasedJob
from app.domain.outcomes import Release
from app.domain.states import Policy
from app.settings import Settings
from app.store.database import Database
from app.store.effects import Effects
from app.store.fleet import Fleet
from app.store.leases import Ended
from tests.integration.world import World, opened
from tests.unit.leased import FakeLease
from workers.effects import EffectEngine
from workers.handling.calling import Caller
from workers.handling.context import Context
from workers.handling.threads import Threads


class Desk:
    """The effects of one job over its attempts, and what was called outside."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.effects = Effects(world.db, world.settings)
        self.calls: list[str] = []
        self.job: LeasedJob

    async def begin(self) -> Context:
        [self.job] = await self.world.run()
        return self._context()

    async def again(self, world: World | None = None) -> Context:
        """The next attempt: the job is given back and claimed, perhaps by another worker."""
        await self.world.leases.release_if_leased([Ended(self.job.id, self.job.attempt, Release("test"))])
        [self.job] = await (world or self.world).claim([self.job.id])
        return self._context()

    async def taken_away(self, world: World) -> Context:
        """The next attempt, at another worker, while the one before knows nothing of it."""
        await self.world.execute(
            "UPDATE leases SET attempt = attempt + 1, worker_id = $2 WHERE job_id = $1", self.job.id, world.worker_id
        )
        self.job = self.job._replace(attempt=self.job.attempt + 1)
        return self._context()

    async def on_record(self, key: str) -> dict[str, Any]:
        async with self.world.db.session() as connection:
            row = await connection.fetchrow("SELECT * FROM effects WHERE job_id = $1 AND key = $2", self.job.id, key)
        return dict(row) if row is not None else {}

    async def send(self, text: str) -> str:
        self.calls.append(text)
        return f"sent {text}"

    async def fail(self, text: str) -> str:
        self.calls.append(text)
        raise TimeoutError("no answer")

    async def found(self, text: str) -> str:
        return f"found {text}"

    def _context(self) -> Context:
        lease = FakeLease(self.job)
        return Context(lease, EffectEngine(lease, self.effects, Caller(Threads(4)), effect_bytes_max=10_000))


@pytest.fixture
async def other(db: Database, settings: Settings) -> AsyncIterator[World]:
    """Another worker beside the world's."""
    async with opened(db, settings) as world:
        yield world


@pytest.fixture
def desk(world: World) -> Desk:
    return Desk(world)


async def test_an_effect_is_performed_once_over_all_attempts(desk: Desk) -> None:
    ctx = await desk.begin()
    assert await asyncio.gather(*[ctx.effect("mail", desk.send, "hi") for _ in range(5)]) == ["sent hi"] * 5
    assert await (await desk.again()).effect("mail", desk.send, "hi") == "sent hi"
    assert desk.calls == ["hi"]
    with pytest.raises(EffectMismatch):
        await (await desk.again()).effect("mail", desk.send, "ho")


async def test_a_repeated_call_is_counted_on_record(desk: Desk) -> None:
    ctx = await desk.begin()
    with pytest.raises(TimeoutError):
        await ctx.effect("mail", desk.fail, "hi")
    await (await desk.again()).effect("mail", desk.send, "hi")
    assert (await desk.on_record("mail"))["calls"] == 2


async def test_an_at_most_once_effect_without_a_result_is_never_called_again(desk: Desk) -> None:
    ctx = await desk.begin()
    with pytest.raises(EffectUnknown):
        await ctx.effect("pay", desk.fail, "7", policy="at_most_once")
    for policy in ("at_most_once", "repeatable"):  # not even when the code is changed to say it may
        with pytest.raises(EffectUnknown):
            await (await desk.again()).effect("pay", desk.send, "7", policy=policy)
    assert desk.calls == ["7"]


async def test_a_late_worker_neither_begins_nor_records_an_effect(desk: Desk) -> None:
    late = await desk.begin()
    go_on, calling = asyncio.Event(), asyncio.Event()

    async def slow(text: str) -> str:
        calling.set()
        await go_on.wait()
        return f"late {text}"

    task = asyncio.create_task(late.effect("mail", slow, "hi"))
    await calling.wait()
    assert await (await desk.again()).effect("mail", desk.send, "hi") == "sent hi"
    go_on.set()
    with pytest.raises(LeaseLost):
        await task
    with pytest.raises(LeaseLost):
        await late.effect("another", desk.send, "ho")
    assert desk.calls == ["hi"]
    assert (await desk.on_record("mail"))["result"] == '"sent hi"'


async def test_an_effect_of_an_attempt_that_ended_in_order_is_reconciled_at_once(desk: Desk, other: World) -> None:
    ctx = await desk.begin()
    with pytest.raises(TimeoutError):
        await ctx.effect("pay", desk.fail, "7", policy="reconcile", reconcile=desk.found)
    ctx = await desk.again(other)
    assert await ctx.effect("pay", desk.send, "7", policy="reconcile", reconcile=desk.found) == "found 7"
    assert desk.calls == ["7"]


async def test_an_effect_of_a_worker_that_was_fenced_is_reconciled_only_once_it_is_gone(
    desk: Desk, other: World
) -> None:
    ctx = await desk.begin()
    with pytest.raises(TimeoutError):
        await ctx.effect("pay", desk.fail, "7", policy="reconcile", reconcile=desk.found)
    ctx = await desk.taken_away(other)
    task = asyncio.create_task(ctx.effect("pay", desk.send, "7", policy="reconcile", reconcile=desk.found))
    done, _ = await asyncio.wait({task}, timeout=0.5)
    assert not done, "its writer is alive and may still be calling"
    await Fleet(desk.world.db).leave(desk.world.worker_id, "killed by signal 9")
    assert await task == "found 7"
    assert desk.calls == ["7"]


async def test_a_transaction_commits_its_work_with_its_record_or_neither(desk: Desk) -> None:
    await desk.world.execute("CREATE TABLE bookings (amount int)")

    async def book(connection: Any, amount: int) -> int:
        await connection.execute("INSERT INTO bookings VALUES ($1)", amount)
        return amount

    async def book_and_break(connection: Any, amount: int) -> int:
        await book(connection, amount)
        raise FileNotFoundError("receipt.pdf")

    async def bookings() -> int:
        async with desk.world.db.session() as connection:
            return await connection.fetchval("SELECT count(*) FROM bookings")

    ctx = await desk.begin()
    with pytest.raises(FileNotFoundError):
        await ctx.transact("book", book_and_break, 7)
    assert (await bookings(), await desk.on_record("book")) == (0, {})
    assert await ctx.transact("book", book, 7) == 7
    assert await (await desk.again()).transact("book", book, 7) == 7
    assert await bookings() == 1


async def test_every_call_is_counted_also_within_one_attempt(desk: Desk) -> None:
    ctx = await desk.begin()
    for _ in range(2):
        with pytest.raises(TimeoutError):
            await ctx.effect("mail", desk.fail, "hi")
    await ctx.effect("mail", desk.send, "hi")

    assert len(desk.calls) == (await desk.on_record("mail"))["calls"] == 3


async def test_an_intent_sent_twice_because_its_answer_was_lost_counts_one_call(desk: Desk) -> None:
    await desk.begin()
    for _ in range(2):
        await desk.effects.intent(desk.job.id, desk.job.attempt, "mail", Policy.REPEATABLE, b"digest")

    assert (await desk.on_record("mail"))["calls"] == 1


async def test_a_result_that_comes_after_the_lease_is_gone_is_not_recorded(desk: Desk, world: World) -> None:
    """The intent is still the late attempt's own: only the lease tells that its word no longer counts."""
    await desk.begin()
    late = desk.job
    await desk.effects.intent(late.id, late.attempt, "mail", Policy.AT_MOST_ONCE, b"digest")
    assert await desk.effects.record(late.id, late.attempt, "mail", "1")
    await world.execute("UPDATE effects SET state = 'intent', result = NULL")

    await desk.taken_away(world)

    assert not await desk.effects.record(late.id, late.attempt, "mail", "2")
    assert not await desk.effects.clear(late.id, late.attempt, "mail")
    row = await desk.on_record("mail")
    assert (row["state"], row["result"], row["attempt"]) == ("intent", None, late.attempt)


async def test_a_transaction_sent_twice_because_its_answer_was_lost_counts_once(desk: Desk) -> None:
    """The first goes on at the server, uncommitted, when the second begins: one of them must not commit."""
    await desk.world.execute("CREATE TABLE bookings (amount int)")
    await desk.begin()
    both = asyncio.Barrier(2)
    entered = 0

    async def book(connection: Any) -> str:
        nonlocal entered
        entered += 1
        if entered <= 2:
            await both.wait()
        await connection.execute("INSERT INTO bookings VALUES (7)")
        return "7"

    answers = await asyncio.gather(
        *[desk.effects.transact(desk.job.id, desk.job.attempt, "book", b"digest", book) for _ in range(2)]
    )

    assert [answer.row.result for answer in answers if answer.row is not None] == ["7", "7"]
    async with desk.world.db.session() as connection:
        assert await connection.fetchval("SELECT count(*) FROM bookings") == 1


async def test_transactions_of_handlers_keep_no_ending_from_being_written(
    desk: Desk, world: World, settings: Settings
) -> None:
    await desk.begin()
    transactions, rest = [await Database.open(settings, "test", size_max=1) for _ in range(2)]
    effects, go_on, inside = Effects(rest, settings, transactions), asyncio.Event(), asyncio.Event()

    async def hold(_connection: Any) -> str:
        inside.set()
        await go_on.wait()
        return "1"

    holding = asyncio.create_task(effects.transact(desk.job.id, desk.job.attempt, "book", b"digest", hold))
    try:
        await inside.wait()
        granted = await asyncio.wait_for(
            effects.intent(desk.job.id, desk.job.attempt, "mail", Policy.REPEATABLE, b"digest"), 3
        )
        assert granted.grant is Grant.GRANTED
    finally:
        go_on.set()
        await holding
        await transactions.close()
        await rest.close()


async def test_an_old_attempt_is_granted_nothing_in_the_company_of_the_one_that_holds_the_lease(desk: Desk) -> None:
    """Concurrent wishes share a statement: those of a late attempt and its successor too, when one process has both."""
    await desk.begin()
    late = desk.job
    await desk.again()
    wishes = [(late.attempt, "late"), (desk.job.attempt, "mine")]
    rows = await desk.world.db.fetch(
        "intend_if_leased",
        [desk.job.id] * 2,
        [attempt for attempt, _ in wishes],
        [key for _, key in wishes],
        [Policy.REPEATABLE] * 2,
        [b"digest"] * 2,
        [False] * 2,
    )
    assert [(row["held"], row["granted"]) for row in rows] == [(False, False), (True, True)]
    assert await desk.on_record("late") == {}
    await desk.effects.intent(desk.job.id, desk.job.attempt, "late", Policy.REPEATABLE, b"digest")
    rows = await desk.world.db.fetch(
        "record_if_leased", [desk.job.id] * 2, [attempt for attempt, _ in wishes], ["late", "mine"], ["1", "1"]
    )
    assert [row["nth"] for row in rows] == [2]


@pytest.mark.parametrize("state", ["intent", "recorded"])
async def test_a_transaction_records_over_nothing_but_what_is_cleared(desk: Desk, state: str) -> None:
    """Its look before the call may have been too early: what counts is what stands there at the record."""
    await desk.begin()
    job = desk.job
    await desk.effects.intent(job.id, job.attempt, "book", Policy.AT_MOST_ONCE, b"digest")
    if state == "recorded":
        await desk.effects.record(job.id, job.attempt, "book", "1")
    before = await desk.on_record("book")
    args = (job.id, "book", "default", job.attempt, desk.world.worker_id, b"other", "2")
    assert await desk.world.db.fetchval("transact_record", *args) is None
    assert await desk.on_record("book") == before
    await desk.world.execute("UPDATE effects SET state = 'cleared', result = NULL")
    assert await desk.world.db.fetchval("transact_record", *args) == 1


async def test_an_intent_that_was_taken_back_counts_as_a_call_beside_the_next_one(desk: Desk) -> None:
    await desk.begin()
    job = desk.job
    for _ in range(2):
        await desk.effects.intent(job.id, job.attempt, "mail", Policy.REPEATABLE, b"digest")
        assert await desk.effects.clear(job.id, job.attempt, "mail")
    assert (await desk.on_record("mail"))["calls"] == 2


async def test_an_intent_without_a_result_is_not_called_again_with_other_arguments(desk: Desk) -> None:
    ctx = await desk.begin()
    with pytest.raises(TimeoutError):
        await ctx.effect("mail", desk.fail, "hi")
    with pytest.raises(EffectMismatch):
        await (await desk.again()).effect("mail", desk.send, "ho")
    assert desk.calls == ["hi"]


async def test_code_that_became_careful_does_not_call_what_careless_code_may_have_called(desk: Desk) -> None:
    ctx = await desk.begin()
    with pytest.raises(TimeoutError):
        await ctx.effect("pay", desk.fail, "7", policy="repeatable")
    with pytest.raises(EffectUnknown):
        await (await desk.again()).effect("pay", desk.send, "7", policy="at_most_once")
    assert desk.calls == ["7"]


async def test_another_effect_of_the_job_is_no_answer_to_a_wish(desk: Desk) -> None:
    await desk.begin()
    job = desk.job
    for key in ("first", "second", "third"):
        answer = await desk.effects.intent(job.id, job.attempt, key, Policy.AT_MOST_ONCE, b"digest")
        assert answer.grant is Grant.GRANTED
        assert await desk.effects.record(job.id, job.attempt, key, f'"{key}"')
    answer = await desk.effects.intent(job.id, job.attempt, "second", Policy.AT_MOST_ONCE, b"digest")
    assert answer.row is not None
    assert (answer.row.key, answer.row.result) == ("second", '"second"')
