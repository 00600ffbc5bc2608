"""What the transport promises, on a real server: nothing handed over twice at once, nothing left for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import UUID, uuid4

import pytest

from app.domain.errors import BrokerAway
from app.settings import Settings
from app.transport import keys
from app.transport.base import Delivery, EntryState, Publisher, Subscriber
from app.transport.connect import publisher, subscriber
from tests.integration.raw_redis import RawRedis

QUEUE = "default"
STREAM = keys.stream(QUEUE)
WINDOW = 4_096

Open = Callable[..., Subscriber]


@pytest.fixture
async def raw(settings: Settings) -> AsyncIterator[RawRedis]:
    server = RawRedis(settings)
    yield server
    await server.close()


@pytest.fixture
async def relay(settings: Settings) -> AsyncIterator[Publisher]:
    side = publisher(settings)
    yield side
    await side.close()


@pytest.fixture
async def worker(settings: Settings) -> AsyncIterator[Open]:
    opened: list[Subscriber] = []

    def open_one(worker_id: UUID | None = None, queues: tuple[str, ...] = (QUEUE,)) -> Subscriber:
        opened.append(subscriber(settings, worker_id or uuid4(), queues))
        return opened[-1]

    yield open_one
    for one in opened:
        await one.close()


async def pending(raw: RawRedis) -> int:
    return (await raw("XPENDING", STREAM, keys.GROUP))[0]


async def publish(relay: Publisher, count: int, queue: str = QUEUE) -> list[tuple[UUID, int]]:
    rows = [(uuid4(), 0) for _ in range(count)]
    await relay.read_all(queue, WINDOW)
    answer = await relay.publish(queue, rows, WINDOW)
    assert len(answer.receipts) == count
    return rows


def fences(deliveries: list[Delivery]) -> list[tuple[UUID, int]]:
    return [(one.job_id, one.attempt) for one in deliveries]


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(5):
        while not await condition():  # the server has no event for it
            await asyncio.sleep(0.01)


class TestPublishing:
    async def test_rows_are_published_in_order_and_only_up_to_the_window(self, relay: Publisher) -> None:
        rows = [(uuid4(), attempt) for attempt in range(5)]
        await relay.read_all(QUEUE, WINDOW)
        answer = await relay.publish(QUEUE, rows, 3)
        assert (len(answer.receipts), answer.length, answer.oldest) == (3, 3, answer.receipts[0])
        assert fences(await relay.read_all(QUEUE, WINDOW)) == rows[:3]

    async def test_a_publisher_that_has_not_read_the_queue_adds_nothing(self, relay: Publisher) -> None:
        answer = await relay.publish(QUEUE, [(uuid4(), 0)], WINDOW)
        assert answer.changed
        assert await relay.read_all(QUEUE, WINDOW) == []

    @pytest.mark.parametrize("loss", [("FLUSHALL",), ("DEL", STREAM)])
    async def test_a_loss_of_the_stream_is_noticed_by_the_next_publish(
        self, relay: Publisher, raw: RawRedis, worker: Open, loss: tuple[str, ...]
    ) -> None:
        await publish(relay, 3)
        await raw(*loss)
        await worker().read(1, 0.01)  # a worker makes stream and group again before the relay looks
        assert (await relay.publish(QUEUE, [], WINDOW)).changed
        assert await relay.read_all(QUEUE, WINDOW) == []
        await publish(relay, 1)

    async def test_two_relays_at_once_never_publish_on_top_of_each_other(
        self, settings: Settings, relay: Publisher
    ) -> None:
        other = publisher(settings)
        try:
            await publish(relay, 1)
            await other.read_all(QUEUE, WINDOW)
            await publish(other, 1)
            assert (await relay.publish(QUEUE, [(uuid4(), 0)], WINDOW)).changed
        finally:
            await other.close()

    async def test_a_full_server_refuses_and_what_was_taken_before_has_receipts(
        self, relay: Publisher, raw: RawRedis
    ) -> None:
        await publish(relay, 1)
        await raw("CONFIG", "SET", "maxmemory", "1")
        try:
            answer = await relay.publish(QUEUE, [(uuid4(), 0)], WINDOW)
            assert answer.refused is not None
            assert "OOM" in answer.refused
            assert answer.receipts == []
        finally:
            await raw("CONFIG", "SET", "maxmemory", "0")
        await publish(relay, 1)

    async def test_a_read_only_server_is_away_and_then_back(
        self, relay: Publisher, raw: RawRedis, worker: Open
    ) -> None:
        await publish(relay, 1)
        await raw("REPLICAOF", "127.0.0.1", "1")
        try:
            answer = await relay.publish(QUEUE, [(uuid4(), 0)], WINDOW)
            assert answer.refused is not None
            assert "READONLY" in answer.refused
            with pytest.raises(BrokerAway):
                await worker().read(1, 0.01)
        finally:
            await raw("REPLICAOF", "NO", "ONE")
        await publish(relay, 1)
        assert len(await worker().read(10, 0.3)) == 2

    async def test_a_key_of_another_type_in_the_place_of_a_stream_is_mended(
        self, relay: Publisher, raw: RawRedis, worker: Open
    ) -> None:
        await raw("SET", STREAM, "nonsense")
        reader = worker()
        assert await reader.read(1, 0.01) == []
        await raw("SET", STREAM, "nonsense")
        await reader.acknowledge([Delivery(QUEUE, uuid4(), 0, "1-1")])
        assert await relay.consumers(QUEUE) == []
        assert fences(await self._published_and_read(relay, reader)) != []

    async def test_a_stream_that_a_stranger_has_used_up_is_made_anew(
        self, relay: Publisher, raw: RawRedis, worker: Open
    ) -> None:
        await raw("XADD", STREAM, f"{2**64 - 1}-{2**64 - 1}", "job", "x")
        await relay.read_all(QUEUE, WINDOW)
        assert (await relay.publish(QUEUE, [(uuid4(), 0)], WINDOW)).refused is not None
        assert len(await self._published_and_read(relay, worker())) == 1

    async def _published_and_read(self, relay: Publisher, reader: Subscriber) -> list[Delivery]:
        await publish(relay, 1)
        return await reader.read(10, 0.3)

    async def test_missing_names_the_entries_that_are_gone(self, relay: Publisher, raw: RawRedis) -> None:
        await relay.read_all(QUEUE, WINDOW)
        receipts = (await relay.publish(QUEUE, [(uuid4(), 0) for _ in range(3)], WINDOW)).receipts
        await raw("XDEL", STREAM, receipts[1])
        assert await relay.missing(QUEUE, receipts) == [receipts[1]]

    async def test_the_queues_of_the_broker_are_known_by_name(self, relay: Publisher, raw: RawRedis) -> None:
        await publish(relay, 1, "b")
        await publish(relay, 1, "a.x")
        await raw("SET", keys.stream("not-a-stream"), "1")
        assert await relay.queues() == ["a.x", "b"]


class TestReading:
    async def test_entries_published_before_any_worker_are_read(self, relay: Publisher, worker: Open) -> None:
        rows = await publish(relay, 10)
        assert fences(await worker().read(10, 0.3)) == rows

    async def test_a_read_gives_no_more_than_asked_for_over_several_queues(
        self, relay: Publisher, worker: Open
    ) -> None:
        for queue in ("a", "b", "c"):
            await publish(relay, 4, queue)
        reader = worker(queues=("a", "b", "c"))
        sizes = [len(await reader.read(5, 0.01)) for _ in range(3)]
        assert sizes == [5, 5, 2]

    async def test_a_waiting_reader_of_several_queues_wakes_for_any(self, relay: Publisher, worker: Open) -> None:
        reader = worker(queues=("a", "b"))
        await reader.read(1, 0.01)
        reading = asyncio.create_task(reader.read(5, 5))
        await asyncio.sleep(0)
        rows = await publish(relay, 1, "b")
        assert fences(await reading or await reader.read(5, 0.3)) == rows

    async def test_a_group_lost_while_a_reader_waits_is_mended_at_once(
        self, relay: Publisher, raw: RawRedis, worker: Open
    ) -> None:
        reader = worker()
        for _ in range(5):
            await raw("FLUSHALL")
            assert await reader.read(1, 0.01) == []
            rows = await publish(relay, 1)
            assert fences(await reader.read(1, 0.3)) == rows

    async def test_a_group_lost_while_the_reader_that_made_it_waits_is_mended_too(
        self, relay: Publisher, raw: RawRedis, worker: Open
    ) -> None:
        reading = asyncio.create_task(worker().read(1, 5))

        async def waits() -> bool:
            return await raw("EXISTS", STREAM) and "blocked_clients:1" in await raw("INFO", "clients")

        for _ in range(2):
            await until(waits)
            await raw("FLUSHALL")
        await until(waits)
        rows = await publish(relay, 1)
        assert fences(await reading) == rows

    async def test_a_destroyed_group_skips_neither_unread_nor_pending_entries(
        self, relay: Publisher, raw: RawRedis, worker: Open
    ) -> None:
        rows = await publish(relay, 15)
        reader = worker()
        await reader.read(5, 0.3)
        await raw("XGROUP", "DESTROY", STREAM, keys.GROUP)
        assert fences(await reader.read(20, 0.3)) == rows

    async def test_nonsense_is_removed_counted_and_passed_over(
        self, relay: Publisher, raw: RawRedis, worker: Open
    ) -> None:
        await publish(relay, 1)
        for fields in (("x", "y"), ("job", "no-uuid", "attempt", "0"), ("job", str(uuid4()), "attempt", "-1")):
            await raw("XADD", STREAM, "*", *fields)
        await raw("XADD", STREAM, "*", "job", str(uuid4()), "attempt", "9" * 30)
        await raw("EVAL", "return redis.call('XADD', KEYS[1], '*', 'job', '\\255\\0', 'attempt', '1')", 1, STREAM)
        assert len(await worker().read(10, 0.3)) == 1
        assert await raw("XLEN", STREAM) == await pending(raw) == 1

    async def test_what_a_cancelled_read_was_given_comes_with_the_next_one(
        self, relay: Publisher, worker: Open
    ) -> None:
        reader = worker()
        for _ in range(50):
            reading = asyncio.create_task(reader.read(10, 1))
            publishing = asyncio.create_task(publish(relay, 1))
            await asyncio.sleep(0)
            reading.cancel()
            rows = await publishing
            await asyncio.gather(reading, return_exceptions=True)
            assert fences(await reader.read(10, 0.3) or await reader.read(10, 0.3)) == rows

    async def test_a_cut_connection_is_away_once_and_then_works(
        self, relay: Publisher, raw: RawRedis, worker: Open
    ) -> None:
        reader = worker()
        await reader.read(1, 0.01)
        reading = asyncio.create_task(reader.read(1, 5))

        async def blocked() -> bool:
            return "blocked_clients:1" in await raw("INFO", "clients")

        await until(blocked)
        await raw("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        with pytest.raises(BrokerAway):
            await reading
        rows = await publish(relay, 1)  # an idle connection that was cut is noticed before it is used
        assert fences(await reader.read(1, 0.3)) == rows


class TestAnswering:
    async def test_an_acknowledged_entry_is_gone_from_stream_and_pending_list(
        self, relay: Publisher, raw: RawRedis, worker: Open
    ) -> None:
        await publish(relay, 3)
        reader = worker()
        await reader.acknowledge(await reader.read(2, 0.3))
        assert (await raw("XLEN", STREAM), await pending(raw)) == (1, 0)

    async def test_a_late_worker_removes_nothing_that_another_holds(
        self, relay: Publisher, raw: RawRedis, worker: Open
    ) -> None:
        await publish(relay, 1)
        late, holder = worker(), worker()
        held = await late.read(1, 0.3)
        assert await holder.reclaim(1, 0) == held
        await late.acknowledge(held)
        await late.renew(held)
        assert (await raw("XLEN", STREAM), await pending(raw)) == (1, 1)
        assert await late.reclaim(1, 60) == []
        await holder.acknowledge(held)
        assert (await raw("XLEN", STREAM), await pending(raw)) == (0, 0)

    async def test_a_renewed_entry_is_not_idle(self, relay: Publisher, raw: RawRedis, worker: Open) -> None:
        await publish(relay, 2)
        reader = worker()
        kept, dropped = await reader.read(2, 0.3)

        async def both_idle() -> bool:
            rows = await raw("XPENDING", STREAM, keys.GROUP, "-", "+", 10)
            return all(row[2] > 200 for row in rows)

        await until(both_idle)
        await reader.renew([kept])
        assert await worker().reclaim(10, 0.2) == [dropped]

    async def test_answers_after_a_flush_are_nothing_and_no_error(
        self, relay: Publisher, raw: RawRedis, worker: Open
    ) -> None:
        await publish(relay, 1)
        reader = worker()
        held = await reader.read(1, 0.3)
        await raw("FLUSHALL")
        await reader.acknowledge(held)
        await reader.renew(held)
        assert await reader.reclaim(1, 0) == []

    async def test_idle_entries_behind_many_live_ones_are_reached(
        self, relay: Publisher, raw: RawRedis, worker: Open
    ) -> None:
        await publish(relay, 305)
        busy, dead, other = worker(), worker(), worker()
        live = await busy.read(300, 0.3)
        orphans = await dead.read(5, 0.3)

        async def all_idle() -> bool:
            rows = await raw("XPENDING", STREAM, keys.GROUP, "-", "+", 400)
            return all(row[2] > 500 for row in rows)

        await until(all_idle)
        await busy.renew(live)
        found: list[Delivery] = []
        for _ in range(5):
            found += await other.reclaim(10, 0.45)
        assert found == orphans

    async def test_deleted_entries_leave_the_pending_list_when_they_are_reclaimed(
        self, relay: Publisher, raw: RawRedis, worker: Open
    ) -> None:
        await publish(relay, 5)
        held = await worker().read(5, 0.3)
        await raw("XDEL", STREAM, held[1].receipt, held[3].receipt)
        await raw("XTRIM", STREAM, "MAXLEN", 2)
        other = worker()
        left = await other.reclaim(10, 0)
        assert left == [held[2], held[4]]
        assert await pending(raw) == 2


class TestMending:
    async def test_what_a_gone_worker_had_is_cleared_and_its_consumer_with_it(
        self, relay: Publisher, worker: Open
    ) -> None:
        await publish(relay, 3)
        gone, there = uuid4(), uuid4()
        held = await worker(gone).read(2, 0.3)
        kept = await worker(there).read(1, 0.3)
        assert await relay.clear_consumer(QUEUE, gone) == [one.receipt for one in held]
        assert await relay.consumers(QUEUE) == [there]
        assert await relay.read_all(QUEUE, WINDOW) == kept
        assert await relay.clear_consumer("nowhere", gone) == []

    @pytest.mark.parametrize("how", ["lost pending list", "acknowledged but not deleted"])
    async def test_an_entry_that_is_pending_for_nobody_is_swept(
        self, relay: Publisher, raw: RawRedis, worker: Open, how: str
    ) -> None:
        await publish(relay, 3)
        me = uuid4()
        held = await worker(me).read(1, 0.3)
        if how == "lost pending list":
            await raw("XGROUP", "DELCONSUMER", STREAM, keys.GROUP, str(me))
        else:
            await raw("XACK", STREAM, keys.GROUP, held[0].receipt)
        assert [one.state for one in await relay.inspect(QUEUE, 10)] == [
            EntryState.UNOWNED,
            EntryState.UNREAD,
            EntryState.UNREAD,
        ]
        assert await relay.sweep_unowned(QUEUE) == [held[0].receipt]
        assert await relay.sweep_unowned(QUEUE) == []
        assert len(await relay.read_all(QUEUE, WINDOW)) == 2

    async def test_a_stream_is_dropped_only_when_it_holds_nothing_and_nobody_reads_it(
        self, relay: Publisher, worker: Open
    ) -> None:
        await publish(relay, 1)
        assert not await relay.drop_unused(QUEUE)
        me = uuid4()
        reader = worker(me)
        await reader.acknowledge(await reader.read(1, 0.3))
        assert not await relay.drop_unused(QUEUE)
        await relay.clear_consumer(QUEUE, me)
        assert await relay.drop_unused(QUEUE)
        assert await relay.queues() == []
        assert not await relay.drop_unused(QUEUE)
        rows = await publish(relay, 1)
        assert fences(await reader.read(1, 0.3)) == rows

    async def test_an_auditor_sees_who_holds_what(self, relay: Publisher, raw: RawRedis, worker: Open) -> None:
        (row,) = await publish(relay, 1)
        await raw("XADD", STREAM, "*", "x", "y")
        me = uuid4()
        await worker(me).read(1, 0.3)
        pending, nonsense = await relay.inspect(QUEUE, 10)
        assert (pending.state, pending.job_id, pending.attempt, pending.consumer) == (EntryState.PENDING, *row, str(me))
        assert pending.deliveries == 1
        assert 0 <= pending.age_seconds < 5
        assert (nonsense.state, nonsense.job_id, nonsense.consumer) == (EntryState.UNREAD, None, None)
