"""The relay's side of SQS.

Nobody can read a queue at SQS without taking from it, so what it holds is not known, only about how many it holds. They
leave about in the order they came: of those that were sent the youngest are taken to be there, as many as there are.
Where that is wrong a row is published once too often, and its second message is acknowledged away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.domain.errors import BrokerAway
from app.settings import Settings
from app.transport.base import Delivery, Entry, Published
from app.transport.sqs_client import SqsClient
from app.transport.sqs_messages import body_of
from app.transport.sqs_names import queue_of

CONNECTIONS_MAX = 16
COUNT_SECONDS = 0.1
NAMES_MAX = 1_000
COUNTS = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed")


@dataclass(slots=True)
class _Sent:
    """`total` messages were sent by this process; `held` were there at `counted_at`, and what was sent since."""

    total: int = 0
    held: int = 0
    counted_at: float = float("-inf")

    @property
    def oldest(self) -> str | None:
        """The receipt of the first that is taken to be there. Receipts count what was sent, from 1."""
        return _receipt(max(0, self.total - self.held) + 1) if self.held and self.total else None


class SqsPublisher:
    """Publishes to standard queues. `app.transport.base.Publisher` says what each method promises.

    But two relays that both believe to lead may send a row twice, and so does a new leader: nothing tells it what the
    queue holds.
    """

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = SqsClient(settings, connections_max=CONNECTIONS_MAX)
        self._prefix = settings.sqs_prefix
        self._clock = clock
        self._queues: dict[str, _Sent] = {}

    async def publish(self, queue: str, rows: Sequence[tuple[UUID, int]], window: int) -> Published:
        sent = self._queues.setdefault(queue, _Sent())
        # A queue that nothing is sent to need not be there.
        if (rows or sent.held) and self._clock() - sent.counted_at >= COUNT_SECONDS:
            sent.held = await self._count(queue)
            sent.counted_at = self._clock()
        receipts, refused = await self._send(queue, sent, rows[: max(0, window - sent.held)])
        return Published(receipts, sent.held, sent.oldest, refused=refused)

    async def missing(self, queue: str, receipts: Sequence[str]) -> list[str]:
        return []  # `publish` tells by how many are left

    async def read_all(self, queue: str, limit: int) -> list[Delivery]:
        return []  # to read is to take

    async def queues(self) -> list[str]:
        told = await self._client.call("list_queues", QueueNamePrefix=self._prefix, MaxResults=NAMES_MAX)
        names = (url.rpartition("/")[2] for url in told.get("QueueUrls", []))
        return sorted(queue for name in names if (queue := queue_of(self._prefix, name)) is not None)

    async def consumers(self, queue: str) -> list[UUID]:
        return []  # SQS knows none, and gives what a worker left behind to others when its visibility ends

    async def clear_consumer(self, queue: str, worker_id: UUID) -> list[str]:
        return []

    async def sweep_unowned(self, queue: str) -> list[str]:
        return []

    async def drop_unused(self, queue: str) -> bool:
        return False  # queues are infrastructure: who made them takes them away

    async def inspect(self, queue: str, limit: int) -> list[Entry]:
        return []

    async def remove(self, queue: str, entries: Sequence[Entry]) -> int:
        return 0

    async def close(self) -> None:
        await self._client.close()

    async def _count(self, queue: str) -> int:
        told = await self._client.on(queue, "get_queue_attributes", AttributeNames=list(COUNTS))
        return sum(int(told["Attributes"].get(name, 0)) for name in COUNTS)

    async def _send(
        self, queue: str, sent: _Sent, rows: Sequence[tuple[UUID, int]]
    ) -> tuple[list[str | None], str | None]:
        """Receipts in the order of the rows, None for one that was refused, and why the first was."""
        entries = [{"Id": str(nth), "MessageBody": body_of(*row)} for nth, row in enumerate(rows)]
        answers = await self._client.on_each(queue, "send_message_batch", entries)
        away = [answer for answer in answers if isinstance(answer, BrokerAway)]
        if away and len(away) == len(answers):
            raise away[0]
        accepted: set[int] = set()
        refused: str | None = None
        for answer in answers:
            if isinstance(answer, BrokerAway):
                refused = refused or str(answer)
                continue
            accepted.update(int(one["Id"]) for one in answer.get("Successful", []))
            failed = answer.get("Failed", [])
            refused = refused or (f"{failed[0].get('Code')}: {failed[0].get('Message', '')}" if failed else None)
        receipts: list[str | None] = []
        for nth in range(len(rows)):
            if nth in accepted:
                sent.total += 1
                sent.held += 1
                receipts.append(_receipt(sent.total))
            else:
                receipts.append(None)
        return receipts, refused


def _receipt(nth: int) -> str:
    return f"{nth}-0"
