"""What nobody would ever acknowledge is found and cleared, and an auditor sees it."""

from __future__ import annotations

from uuid import uuid4

import pytest

from app.transport import keys
from app.transport.base import EntryState, Publisher
from tests.integration.raw_redis import RawRedis
from tests.integration.streams.entries import QUEUE, STREAM, WINDOW, Open, fences, publish


async def test_what_a_gone_worker_had_is_cleared_and_its_consumer_with_it(relay: Publisher, worker: Open) -> None:
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
    relay: Publisher, raw: RawRedis, worker: Open, how: str
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
    relay: Publisher, worker: Open
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


async def test_an_auditor_sees_who_holds_what(relay: Publisher, raw: RawRedis, worker: Open) -> None:
    (row,) = await publish(relay, 1)
    await raw("XADD", STREAM, "*", "x", "y")
    me = uuid4()
    await worker(me).read(1, 0.3)
    pending, nonsense = await relay.inspect(QUEUE, 10)
    assert (pending.state, pending.job_id, pending.attempt, pending.consumer) == (EntryState.PENDING, *row, str(me))
    assert pending.deliveries == 1
    assert 0 <= pending.age_seconds < 5
    assert (nonsense.state, nonsense.job_id, nonsense.consumer) == (EntryState.UNREAD, None, None)
