"""What the relay and workers count on, whichever broker is between them."""

from __future__ import annotations

import asyncio
import time
from uuid import UUID, uuid4

import pytest
from pydantic import SecretStr

from app.domain.errors import BrokerAway
from app.settings import Settings
from app.transport.base import Delivery, Published, Publisher, Subscriber
from app.transport.connect import publisher, subscriber
from tests.integration.brokers.conftest import LEASE_SECONDS, QUEUE, Open
from workers.dev.embedded import free_port

WINDOW = 1_000
WAIT_SECONDS = 0.5
SOON_SECONDS = 12.0

Fence = tuple[UUID, int]


async def publish(relay: Publisher, count: int, queue: str = QUEUE, *, window: int = WINDOW) -> list[Fence]:
    """Publishes so many rows, attempt 1, 2, …, and says which."""
    rows = [(uuid4(), nth) for nth in range(1, count + 1)]
    assert sum(receipt is not None for receipt in (await offer(relay, rows, queue, window=window)).receipts) == count
    return rows


async def offer(relay: Publisher, rows: list[Fence], queue: str = QUEUE, *, window: int = WINDOW) -> Published:
    answer = await relay.publish(queue, rows, window)
    if answer.changed:
        await relay.read_all(queue, WINDOW)
        answer = await relay.publish(queue, rows, window)
    return answer


async def receive(reader: Subscriber, count: int, seconds: float = SOON_SECONDS) -> list[Delivery]:
    """Deliveries of so many rows, whether the broker gives them to a read or to who takes over what idles.

    Of a row that comes again on a slow machine, its lease being over, the last delivery.
    """
    found: dict[Fence, Delivery] = {}
    end = time.monotonic() + seconds
    while (left := count - len(found)) > 0 and time.monotonic() < end:
        came = await reader.read(left, 0.1) or await reader.reclaim(left, LEASE_SECONDS)
        found |= {(one.job_id, one.attempt): one for one in came}
    return list(found.values())


def fences(deliveries: list[Delivery]) -> set[Fence]:
    return {(one.job_id, one.attempt) for one in deliveries}


async def until_told(reader: Subscriber) -> None:
    """Reads on: what a call comes to that outlasts its read, the next one says."""
    while True:
        assert await reader.read(1, WAIT_SECONDS) == []


async def nothing_comes(reader: Subscriber, seconds: float) -> None:
    assert await receive(reader, 1, seconds) == []


async def test_what_is_published_is_read_once_with_its_ids(relay: Publisher, worker: Open) -> None:
    rows = await publish(relay, 45)
    reader = worker()
    found = await receive(reader, 45)
    assert fences(found) == set(rows)
    assert {one.queue for one in found} == {QUEUE}
    await reader.acknowledge(found)
    await nothing_comes(reader, 1.5 * LEASE_SECONDS)


async def test_a_read_waits_for_the_first_and_gives_no_more_than_asked_for(relay: Publisher, worker: Open) -> None:
    reader = worker(queues=(QUEUE, "other"))
    began = time.monotonic()
    assert await reader.read(5, WAIT_SECONDS) == []
    assert time.monotonic() - began < WAIT_SECONDS + 2
    reading = asyncio.create_task(reader.read(1, 5))
    await asyncio.sleep(0.05)
    [row, *_] = await publish(relay, 1, "other")
    found = await reading or await receive(reader, 1)
    assert fences(found) == {row}
    await publish(relay, 7)
    await publish(relay, 7, "other")
    sizes = [len(await reader.read(5, WAIT_SECONDS)) for _ in range(6)]
    assert max(sizes) <= 5
    assert sum(sizes) == 14


async def test_what_nobody_renews_comes_to_another(relay: Publisher, worker: Open) -> None:
    rows = await publish(relay, 3)
    lost, other = worker(), worker()
    assert fences(await receive(lost, 3)) == set(rows)
    assert fences(await receive(other, 3)) == set(rows)


async def test_what_is_renewed_stays(relay: Publisher, worker: Open) -> None:
    await publish(relay, 12)
    mine, other = worker(), worker()
    held = await receive(mine, 12)
    end = time.monotonic() + 2 * LEASE_SECONDS
    while time.monotonic() < end:
        await mine.renew(held)
        await nothing_comes(other, LEASE_SECONDS / 10)
    await mine.acknowledge(held)
    await nothing_comes(other, 1.5 * LEASE_SECONDS)


async def test_who_lost_an_entry_takes_nothing_away_from_who_has_it(relay: Publisher, worker: Open) -> None:
    rows = await publish(relay, 1)
    late, holder, third = worker(), worker(), worker()
    old = await receive(late, 1)
    assert fences(await receive(holder, 1)) == set(rows)
    await late.acknowledge(old)
    await late.renew(old)
    assert fences(await receive(third, 1)) == set(rows)


async def test_to_acknowledge_twice_or_nothing_is_no_error(relay: Publisher, worker: Open) -> None:
    await publish(relay, 1)
    reader = worker()
    found = await receive(reader, 1)
    for _ in range(2):
        await reader.acknowledge(found)
    await reader.renew(found)
    await reader.acknowledge([])


async def test_a_cancelled_read_loses_nothing(relay: Publisher, worker: Open) -> None:
    reader = worker()
    seen: set[Fence] = set()
    rows: set[Fence] = set()
    for _ in range(10):
        reading = asyncio.create_task(reader.read(10, 1))
        await asyncio.sleep(0)
        rows |= set(await publish(relay, 3))
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        found = await reader.read(10, WAIT_SECONDS)
        seen |= fences(found)
        await reader.acknowledge(found)
    seen |= fences(await receive(reader, len(rows - seen)))
    assert seen == rows


async def test_a_queue_holds_no_more_than_its_window(relay: Publisher, worker: Open) -> None:
    rows = [(uuid4(), 1) for _ in range(40)]
    answer = await offer(relay, rows, window=25)
    assert (len(answer.receipts), answer.length) == (25, 25)
    assert (await offer(relay, rows[25:], window=25)).receipts == []
    reader = worker()
    first = await receive(reader, 20)
    await reader.acknowledge(first)
    published = 0
    async with asyncio.timeout(SOON_SECONDS):  # a broker may know only after a moment that there is room
        while published < 15:
            await asyncio.sleep(0.02)
            published += len((await offer(relay, rows[25 + published :], window=25)).receipts)
    assert fences(first) | fences(await receive(reader, 20)) == set(rows)


async def test_the_oldest_tells_what_has_left(relay: Publisher, worker: Open) -> None:
    rows = [(uuid4(), 1) for _ in range(6)]
    receipts = (await offer(relay, rows)).receipts
    reader = worker()
    await reader.acknowledge(await receive(reader, 6))
    async with asyncio.timeout(SOON_SECONDS):
        while (answer := await offer(relay, [])).length:
            assert answer.oldest in receipts
            await asyncio.sleep(0.02)
    assert answer.oldest is None


async def test_a_broker_that_cannot_be_reached_is_away_and_not_waited_for(broker: Settings) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    addresses = {"redis_url": SecretStr(f"redis://{nowhere}/0"), "sqs_endpoint_url": f"http://{nowhere}"}
    gone = broker.model_copy(update=addresses)
    relay, reader = publisher(gone), subscriber(gone, uuid4(), [QUEUE])
    async with asyncio.timeout(10):
        with pytest.raises(BrokerAway):
            await offer(relay, [(uuid4(), 1)])
        with pytest.raises(BrokerAway):
            await until_told(reader)
        await relay.close()
        await reader.close()
