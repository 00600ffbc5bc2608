"""Acknowledged, renewed, taken over: nobody answers for an entry that another holds."""

from __future__ import annotations

from app.transport import keys
from app.transport.base import Delivery, Publisher
from tests.integration.raw_redis import RawRedis
from tests.integration.streams.entries import STREAM, Open, pending, publish, until


async def test_an_acknowledged_entry_is_gone_from_stream_and_pending_list(
    relay: Publisher, raw: RawRedis, worker: Open
) -> None:
    await publish(relay, 3)
    reader = worker()
    await reader.acknowledge(await reader.read(2, 0.3))
    assert (await raw("XLEN", STREAM), await pending(raw)) == (1, 0)


async def test_a_late_worker_removes_nothing_that_another_holds(relay: Publisher, raw: RawRedis, worker: Open) -> None:
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


async def test_a_renewed_entry_is_not_idle(relay: Publisher, raw: RawRedis, worker: Open) -> None:
    await publish(relay, 2)
    reader = worker()
    kept, dropped = await reader.read(2, 0.3)

    async def both_idle() -> bool:
        rows = await raw("XPENDING", STREAM, keys.GROUP, "-", "+", 10)
        return all(row[2] > 200 for row in rows)

    await until(both_idle)
    await reader.renew([kept])
    assert await worker().reclaim(10, 0.2) == [dropped]


async def test_answers_after_a_flush_are_nothing_and_no_error(relay: Publisher, raw: RawRedis, worker: Open) -> None:
    await publish(relay, 1)
    reader = worker()
    held = await reader.read(1, 0.3)
    await raw("FLUSHALL")
    await reader.acknowledge(held)
    await reader.renew(held)
    assert await reader.reclaim(1, 0) == []


async def test_idle_entries_behind_many_live_ones_are_reached(relay: Publisher, raw: RawRedis, worker: Open) -> None:
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
    relay: Publisher, raw: RawRedis, worker: Open
) -> None:
    await publish(relay, 5)
    held = await worker().read(5, 0.3)
    await raw("XDEL", STREAM, held[1].receipt, held[3].receipt)
    await raw("XTRIM", STREAM, "MAXLEN", 2)
    other = worker()
    left = await other.reclaim(10, 0)
    assert left == [held[2], held[4]]
    assert await pending(raw) == 2
