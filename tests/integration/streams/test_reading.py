"""The workers' side: every entry is handed over, whatever happened to stream, group or connection."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from app.domain.errors import BrokerAway
from app.transport import keys
from app.transport.base import Publisher
from tests.integration.raw_redis import RawRedis
from tests.integration.streams.entries import STREAM, Open, fences, pending, publish, until


async def test_entries_published_before_any_worker_are_read(relay: Publisher, worker: Open) -> None:
    rows = await publish(relay, 10)
    assert fences(await worker().read(10, 0.3)) == rows


async def test_a_read_gives_no_more_than_asked_for_over_several_queues(relay: Publisher, worker: Open) -> None:
    for queue in ("a", "b", "c"):
        await publish(relay, 4, queue)
    reader = worker(queues=("a", "b", "c"))
    sizes = [len(await reader.read(5, 0.01)) for _ in range(3)]
    assert sizes == [5, 5, 2]


async def test_a_waiting_reader_of_several_queues_wakes_for_any(relay: Publisher, worker: Open) -> None:
    reader = worker(queues=("a", "b"))
    await reader.read(1, 0.01)
    reading = asyncio.create_task(reader.read(5, 5))
    await asyncio.sleep(0)
    rows = await publish(relay, 1, "b")
    assert fences(await reading or await reader.read(5, 0.3)) == rows


async def test_a_group_lost_while_a_reader_waits_is_mended_at_once(
    relay: Publisher, raw: RawRedis, worker: Open
) -> None:
    reader = worker()
    for _ in range(5):
        await raw("FLUSHALL")
        assert await reader.read(1, 0.01) == []
        rows = await publish(relay, 1)
        assert fences(await reader.read(1, 0.3)) == rows


async def test_a_group_lost_while_the_reader_that_made_it_waits_is_mended_too(
    relay: Publisher, raw: RawRedis, worker: Open
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
    relay: Publisher, raw: RawRedis, worker: Open
) -> None:
    rows = await publish(relay, 15)
    reader = worker()
    await reader.read(5, 0.3)
    await raw("XGROUP", "DESTROY", STREAM, keys.GROUP)
    assert fences(await reader.read(20, 0.3)) == rows


async def test_nonsense_is_removed_counted_and_passed_over(relay: Publisher, raw: RawRedis, worker: Open) -> None:
    await publish(relay, 1)
    for fields in (("x", "y"), ("job", "no-uuid", "attempt", "0"), ("job", str(uuid4()), "attempt", "-1")):
        await raw("XADD", STREAM, "*", *fields)
    await raw("XADD", STREAM, "*", "job", str(uuid4()), "attempt", "9" * 30)
    await raw("EVAL", "return redis.call('XADD', KEYS[1], '*', 'job', '\\255\\0', 'attempt', '1')", 1, STREAM)
    assert len(await worker().read(10, 0.3)) == 1
    assert await raw("XLEN", STREAM) == await pending(raw) == 1


async def test_what_a_cancelled_read_was_given_comes_with_the_next_one(relay: Publisher, worker: Open) -> None:
    reader = worker()
    for _ in range(50):
        reading = asyncio.create_task(reader.read(10, 1))
        publishing = asyncio.create_task(publish(relay, 1))
        await asyncio.sleep(0)
        reading.cancel()
        rows = await publishing
        await asyncio.gather(reading, return_exceptions=True)
        assert fences(await reader.read(10, 0.3) or await reader.read(10, 0.3)) == rows


async def test_a_cut_connection_is_away_once_and_then_works(relay: Publisher, raw: RawRedis, worker: Open) -> None:
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
