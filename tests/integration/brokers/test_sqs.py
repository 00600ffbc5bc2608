"""What is SQS's own: its names, its limits, its batches, its policies."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import BrokerAway
from app.settings import Settings
from app.transport.base import Delivery
from app.transport.sqs_client import SqsClient
from app.transport.sqs_names import NAME_CHARS_MAX, queue_of, sqs_name
from app.transport.sqs_publisher import SqsPublisher
from app.transport.sqs_subscriber import HELD_SECONDS_MAX, SqsSubscriber
from tests.integration.brokers.test_every_broker import fences, receive

QUEUE = "mails.out"
WINDOW = 1_000


@pytest.fixture
def sqs(settings: Settings, sqs_url: str) -> Settings:
    more = {"transport": "sqs", "sqs_endpoint_url": sqs_url, "sqs_prefix": f"t{uuid4().hex[:12]}-"}
    return settings.model_copy(update=more)


@pytest.fixture
async def raw(sqs: Settings) -> AsyncIterator[SqsClient]:
    client = SqsClient(sqs, connections_max=2)
    yield client
    await client.close()


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@given(st.sets(st.from_regex(r"\A[a-z0-9][a-z0-9._-]{0,99}\Z"), max_size=20))
def test_every_queue_has_a_name_of_its_own_that_sqs_takes(queues: set[str]) -> None:
    named = {queue: sqs_name("outlast-", queue) for queue in queues}
    assert len(set(named.values())) == len(queues)
    for queue, name in named.items():
        assert len(name) <= NAME_CHARS_MAX
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
        assert queue_of("outlast-", name) in (queue, None)
    assert queue_of("outlast-", sqs_name("outlast-", "a.b")) == "a.b"
    assert queue_of("outlast-", "somebody-elses") is None


async def test_only_what_was_refused_stays_unpublished(sqs: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """One entry of each batch does not get there, as SQS tells it."""
    whole = SqsClient.on

    async def refusing(self: SqsClient, queue: str, operation: str, **arguments: Any) -> dict[str, Any]:
        if operation != "send_message_batch":
            return await whole(self, queue, operation, **arguments)
        [refused, *entries] = arguments["Entries"]
        told = await whole(self, queue, operation, Entries=entries)
        return {**told, "Failed": [{"Id": refused["Id"], "Code": "InternalError", "SenderFault": False}]}

    monkeypatch.setattr(SqsClient, "on", refusing)
    relay, reader = SqsPublisher(sqs), SqsSubscriber(sqs, uuid4(), [QUEUE])
    rows = [(uuid4(), 1) for _ in range(20)]
    answer = await relay.publish(QUEUE, rows, WINDOW)
    assert [nth for nth, receipt in enumerate(answer.receipts) if receipt is None] == [0, 10]
    assert answer.refused is not None
    assert answer.refused.startswith("InternalError")
    assert fences(await receive(reader, 18)) == {*rows[1:10], *rows[11:]}
    await relay.close()
    await reader.close()


async def test_a_message_is_held_no_longer_than_sqs_allows(sqs: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    whole = SqsClient.on

    async def noting(self: SqsClient, queue: str, operation: str, **arguments: Any) -> dict[str, Any]:
        if operation == "change_message_visibility_batch":
            asked.extend(entry["VisibilityTimeout"] for entry in arguments["Entries"])
        return await whole(self, queue, operation, **arguments)

    monkeypatch.setattr(SqsClient, "on", noting)
    clock, hour = Clock(), 3_600
    relay = SqsPublisher(sqs)
    reader = SqsSubscriber(sqs.model_copy(update={"lease_seconds": float(hour)}), uuid4(), [QUEUE], clock=clock)
    await relay.publish(QUEUE, [(uuid4(), 1)], WINDOW)
    held = await receive(reader, 1)
    ends = HELD_SECONDS_MAX
    for at in (*range(0, ends, hour // 2), ends - 60, ends - 1, ends, ends + 60):
        clock.now = 1_000.0 + at
        await reader.renew(held)
    assert asked == [hour] * 22 + [hour - 1, hour // 2 - 1, 59]
    asked.clear()
    await reader.acknowledge(held)
    await reader.renew(held)
    assert asked == []
    await relay.close()
    await reader.close()


async def test_a_policy_that_gives_messages_up_early_is_refused_and_said(sqs: Settings, raw: SqsClient) -> None:
    made = await raw.call("create_queue", QueueName=f"{sqs.sqs_prefix}dlq")
    told = await raw.call("get_queue_attributes", QueueUrl=made["QueueUrl"], AttributeNames=["QueueArn"])
    for most, fits in ((3, False), (99, False), (100, True), (1_000, True)):
        queue = f"q{most}"
        policy = json.dumps({"deadLetterTargetArn": told["Attributes"]["QueueArn"], "maxReceiveCount": most})
        name = sqs_name(sqs.sqs_prefix, queue)
        await raw.call("create_queue", QueueName=name, Attributes={"RedrivePolicy": policy})
        relay = SqsPublisher(sqs)
        if fits:
            assert (await relay.publish(queue, [(uuid4(), 1)], WINDOW)).length == 1
        else:
            with pytest.raises(BrokerAway, match=f"after {most} deliveries"):
                await relay.publish(queue, [(uuid4(), 1)], WINDOW)
        await relay.close()


async def test_a_queue_that_was_deleted_is_made_again(sqs: Settings, raw: SqsClient) -> None:
    relay, reader = SqsPublisher(sqs), SqsSubscriber(sqs, uuid4(), [QUEUE])
    await relay.publish(QUEUE, [(uuid4(), 1)], WINDOW)
    name = sqs_name(sqs.sqs_prefix, QUEUE)
    await raw.call("delete_queue", QueueUrl=(await raw.call("get_queue_url", QueueName=name))["QueueUrl"])
    row = (uuid4(), 2)
    await relay.publish(QUEUE, [row], WINDOW)
    assert fences(await receive(reader, 1)) == {row}
    assert await relay.queues() == [QUEUE]
    await relay.close()
    await reader.close()


@pytest.mark.parametrize(
    "body", ["", "no json", "[]", '{"job":"x","attempt":1}', '{"job":1}', '{"attempt":true}', "{" * 300, "\u2028"]
)
async def test_nonsense_is_removed_counted_and_passed_over(sqs: Settings, raw: SqsClient, body: str) -> None:
    relay, reader = SqsPublisher(sqs), SqsSubscriber(sqs, uuid4(), [QUEUE])
    row = (uuid4(), 1)
    await relay.publish(QUEUE, [row], WINDOW)
    await raw.on(QUEUE, "send_message", MessageBody=body or " ")
    found = await receive(reader, 1)
    await reader.read(1, 0.2)
    assert fences(found) == {row}
    await reader.acknowledge(found)
    assert reader.nonsense == 1
    await relay.close()
    await reader.close()


async def test_what_nobody_asked_for_is_given_back_soon(sqs: Settings) -> None:
    """A worker that is busy, or drains, must not keep for a lease what came to it in the meantime."""
    long_lease = sqs.model_copy(update={"lease_seconds": 60.0})
    relay = SqsPublisher(long_lease)
    busy, other = SqsSubscriber(long_lease, uuid4(), [QUEUE]), SqsSubscriber(long_lease, uuid4(), [QUEUE])
    assert await busy.read(1, 0.01) == []
    row = (uuid4(), 1)
    await relay.publish(QUEUE, [row], WINDOW)
    found: list[Delivery] = await receive(other, 1)
    assert fences(found) == {row}
    await relay.publish(QUEUE, [(uuid4(), 1)], WINDOW)
    closing = SqsSubscriber(long_lease, uuid4(), [QUEUE])
    assert await closing.read(1, 0.01) == []
    await closing.close()
    assert len(await receive(other, 1)) == 1
    for one in (relay, busy, other):
        await one.close()
