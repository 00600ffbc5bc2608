"""The relay's side: what is published is there once, in order, and what is lost is noticed."""

from __future__ import annotations

from uuid import uuid4

import pytest

from app.domain.errors import BrokerAway
from app.settings import Settings
from app.transport import keys
from app.transport.base import Delivery, Publisher, Subscriber
from app.transport.connect import publisher
from tests.integration.raw_redis import RawRedis
from tests.integration.streams.entries import QUEUE, STREAM, WINDOW, Open, fences, publish


async def test_rows_are_published_in_order_and_only_up_to_the_window(relay: Publisher) -> None:
    rows = [(uuid4(), attempt) for attempt in range(5)]
    await relay.read_all(QUEUE, WINDOW)
    answer = await relay.publish(QUEUE, rows, 3)
    assert (len(answer.receipts), answer.length, answer.oldest) == (3, 3, answer.receipts[0])
    assert fences(await relay.read_all(QUEUE, WINDOW)) == rows[:3]


async def test_a_publisher_that_has_not_read_the_queue_adds_nothing(relay: Publisher) -> None:
    answer = await relay.publish(QUEUE, [(uuid4(), 0)], WINDOW)
    assert answer.changed
    assert await relay.read_all(QUEUE, WINDOW) == []


@pytest.mark.parametrize("loss", [("FLUSHALL",), ("DEL", STREAM)])
async def test_a_loss_of_the_stream_is_noticed_by_the_next_publish(
    relay: Publisher, raw: RawRedis, worker: Open, loss: tuple[str, ...]
) -> None:
    await publish(relay, 3)
    await raw(*loss)
    await worker().read(1, 0.01)  # a worker makes stream and group again before the relay looks
    assert (await relay.publish(QUEUE, [], WINDOW)).changed
    assert await relay.read_all(QUEUE, WINDOW) == []
    await publish(relay, 1)


async def test_two_relays_at_once_never_publish_on_top_of_each_other(settings: Settings, relay: Publisher) -> None:
    other = publisher(settings)
    try:
        await publish(relay, 1)
        await other.read_all(QUEUE, WINDOW)
        await publish(other, 1)
        assert (await relay.publish(QUEUE, [(uuid4(), 0)], WINDOW)).changed
    finally:
        await other.close()


async def test_a_full_server_refuses_and_what_was_taken_before_has_receipts(relay: Publisher, raw: RawRedis) -> None:
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


async def test_a_read_only_server_is_away_and_then_back(relay: Publisher, raw: RawRedis, worker: Open) -> None:
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
    relay: Publisher, raw: RawRedis, worker: Open
) -> None:
    await raw("SET", STREAM, "nonsense")
    reader = worker()
    assert await reader.read(1, 0.01) == []
    await raw("SET", STREAM, "nonsense")
    await reader.acknowledge([Delivery(QUEUE, uuid4(), 0, "1-1")])
    assert await relay.consumers(QUEUE) == []
    assert fences(await published_and_read(relay, reader)) != []


async def test_a_stream_that_a_stranger_has_used_up_is_made_anew(relay: Publisher, raw: RawRedis, worker: Open) -> None:
    await raw("XADD", STREAM, f"{2**64 - 1}-{2**64 - 1}", "job", "x")
    await relay.read_all(QUEUE, WINDOW)
    assert (await relay.publish(QUEUE, [(uuid4(), 0)], WINDOW)).refused is not None
    assert len(await published_and_read(relay, worker())) == 1


async def published_and_read(relay: Publisher, reader: Subscriber) -> list[Delivery]:
    await publish(relay, 1)
    return await reader.read(10, 0.3)


async def test_missing_names_the_entries_that_are_gone(relay: Publisher, raw: RawRedis) -> None:
    await relay.read_all(QUEUE, WINDOW)
    answer = await relay.publish(QUEUE, [(uuid4(), 0) for _ in range(3)], WINDOW)
    receipts = [receipt for receipt in answer.receipts if receipt is not None]
    await raw("XDEL", STREAM, receipts[1])
    assert await relay.missing(QUEUE, receipts) == [receipts[1]]


async def test_the_queues_of_the_broker_are_known_by_name(relay: Publisher, raw: RawRedis) -> None:
    await publish(relay, 1, "b")
    await publish(relay, 1, "a.x")
    await raw("SET", keys.stream("not-a-stream"), "1")
    assert await relay.queues() == ["a.x", "b"]
