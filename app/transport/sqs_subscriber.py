"""A worker's side of SQS.

A message stays the worker's for a lease, which `renew` extends while its job runs, up to the 12 hours that SQS allows.
After that it comes to somebody else, whose claim finds nothing to do and acknowledges it away.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from uuid import UUID

from app.domain.errors import BrokerAway
from app.settings import Settings
from app.telemetry import log
from app.transport.base import Delivery
from app.transport.sqs_client import BATCH, REPLY_SECONDS, SqsClient
from app.transport.sqs_messages import delivery

CONNECTIONS_MAX = 10
WAIT_SECONDS_MAX = 20  # by SQS
HELD_SECONDS_MAX = 12 * 3_600  # by SQS, from the receipt on, however often it is extended
UNREAD_SECONDS = 1.0  # nobody asked for a message: others may have it


@dataclass(slots=True)
class _Hold:
    """A message in our hands, in monotonic seconds: when it came, and until when nobody else gets it."""

    since: float
    until: float


class SqsSubscriber:
    """Receives and answers for one worker. `app.transport.base.Subscriber` says what each method promises."""

    def __init__(
        self,
        settings: Settings,
        worker_id: UUID,
        queues: Sequence[str],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queues = list(queues)
        self._lease_seconds = math.ceil(settings.lease_seconds)
        self._wait_seconds = min(WAIT_SECONDS_MAX, math.ceil(settings.block_seconds))
        self._clock = clock
        reply_seconds = self._wait_seconds + REPLY_SECONDS
        self._receiver = SqsClient(settings, connections_max=CONNECTIONS_MAX, reply_seconds=reply_seconds)
        self._client = SqsClient(settings, connections_max=CONNECTIONS_MAX)
        self._waiting: dict[str, asyncio.Task[bool]] = {}
        self._more: set[asyncio.Task[bool]] = set()
        self._unread: deque[Delivery] = deque()
        self._unread_since = 0.0
        self._giving_back: asyncio.Task[None] | None = None
        self._holds: dict[str, _Hold] = {}
        self.nonsense = 0

    async def read(self, count: int, block_seconds: float) -> list[Delivery]:
        # A call that is cancelled may already have been answered, so it goes on, and the next caller gets its answer.
        self._collect()
        if not self._unread:
            await self._poll(count, block_seconds)
        return [self._unread.popleft() for _ in range(min(count, len(self._unread)))]

    async def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        # What came to somebody else meanwhile is theirs to delete; SQS may take the old receipt all the same.
        now = self._clock()
        mine = [one for one in deliveries if (hold := self._holds.pop(one.receipt, None)) and now < hold.until]
        await self._tell("delete_message_batch", [(one, {}) for one in mine])

    async def renew(self, deliveries: Sequence[Delivery]) -> None:
        now = self._clock()
        asked = [(one, {"VisibilityTimeout": seconds}) for one in deliveries if (seconds := self._seconds_for(one))]
        await self._tell("change_message_visibility_batch", asked)
        for one, extension in asked:
            if one.receipt in self._holds:
                self._holds[one.receipt].until = now + extension["VisibilityTimeout"]

    async def reclaim(self, count: int, min_idle_seconds: float) -> list[Delivery]:
        return []  # SQS itself gives to others what nobody renews

    async def close(self) -> None:
        calls = [*self._waiting.values(), *self._more]
        await asyncio.gather(*calls, return_exceptions=True)
        try:
            await self._give_back()
        except BrokerAway as error:
            log.debug("not_given_back", error=str(error))
        await self._receiver.close()
        await self._client.close()

    async def _poll(self, count: int, block_seconds: float) -> None:
        """Waits for the first queue to have something, then takes as much as is there and wanted."""
        for queue in self._queues:
            if queue not in self._waiting:
                self._waiting[queue] = asyncio.create_task(self._receive(queue, min(count, BATCH), self._wait_seconds))
        await asyncio.wait(self._waiting.values(), timeout=block_seconds, return_when=asyncio.FIRST_COMPLETED)
        full = self._collect()
        wanted = count - len(self._unread)
        if full and wanted > 0:
            calls = min(CONNECTIONS_MAX, math.ceil(wanted / BATCH))
            self._more |= {asyncio.create_task(self._receive(full[nth % len(full)], BATCH, 0)) for nth in range(calls)}
            await asyncio.wait(self._more)
            self._collect()
        self._queues.append(self._queues.pop(0))

    def _collect(self) -> list[str]:
        """Forgets calls that have ended; the queues that had a full batch, so may have more. Raises `BrokerAway`."""
        full: list[str] = []
        errors: list[BaseException] = []
        for queue, call in [*self._waiting.items(), *((None, call) for call in self._more)]:
            if not call.done():
                continue
            if queue is None:
                self._more.discard(call)
            else:
                del self._waiting[queue]
            error = call.exception()
            if error is not None:
                errors.append(error)
                continue
            full += [queue] if queue is not None and call.result() else []
        if errors:
            raise errors[0]
        return full

    async def _receive(self, queue: str, count: int, wait_seconds: int) -> bool:
        """Brings up to `count` deliveries, for whoever reads next; whether they were so many."""
        asked_at = self._clock()
        told = await self._receiver.on(
            queue,
            "receive_message",
            MaxNumberOfMessages=count,
            WaitTimeSeconds=wait_seconds,
            VisibilityTimeout=self._lease_seconds,
        )
        found: list[Delivery] = []
        nonsense: list[str] = []
        for message in told.get("Messages", []):
            one = delivery(queue, message)
            if one is None:
                nonsense.append(message["ReceiptHandle"])
            else:
                found.append(one)
                self._holds[one.receipt] = _Hold(asked_at, self._clock() + self._lease_seconds)
        self._keep(found)
        if nonsense:
            self.nonsense += len(nonsense)
            log.warning("nonsense_messages_removed", queue=queue, messages=len(nonsense), total=self.nonsense)
            await self._each(queue, "delete_message_batch", [(receipt, {}) for receipt in nonsense])
        return len(found) == count

    def _keep(self, found: Collection[Delivery]) -> None:
        if found:
            self._unread += found
            self._unread_since = self._clock()
            if self._giving_back is None:
                self._giving_back = asyncio.create_task(self._give_back_unread())

    async def _give_back_unread(self) -> None:
        """What no `read` has fetched lies in a worker that is busy, or about to leave: others may have it."""
        try:
            while self._unread:
                left = self._unread_since + UNREAD_SECONDS - self._clock()
                if left > 0:
                    await asyncio.sleep(left)
                    continue
                await self._give_back()
        except BrokerAway as error:
            log.debug("not_given_back", error=str(error))
        finally:
            self._giving_back = None

    async def _give_back(self) -> None:
        given, self._unread = list(self._unread), deque()
        for one in given:
            self._holds.pop(one.receipt, None)
        await self._tell("change_message_visibility_batch", [(one, {"VisibilityTimeout": 0}) for one in given])

    def _seconds_for(self, one: Delivery) -> int:
        """A lease, or what is left of the longest time that SQS allows; 0: nothing is, or it is ours no more."""
        hold, now = self._holds.get(one.receipt), self._clock()
        if hold is None or now >= hold.until:
            return 0
        return max(0, min(self._lease_seconds, math.floor(HELD_SECONDS_MAX - (now - hold.since)) - 1))

    async def _tell(self, operation: str, asked: Sequence[tuple[Delivery, dict[str, Any]]]) -> None:
        by_queue = sorted(asked, key=lambda pair: pair[0].queue)
        for queue, of_queue in groupby(by_queue, key=lambda pair: pair[0].queue):
            await self._each(queue, operation, [(one.receipt, more) for one, more in of_queue])

    async def _each(self, queue: str, operation: str, asked: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """What is refused for one message (it is somebody else's, or gone) is no matter."""
        entries = [{"Id": str(nth), "ReceiptHandle": receipt, **more} for nth, (receipt, more) in enumerate(asked)]
        for answer in await self._client.on_each(queue, operation, entries):
            if isinstance(answer, BrokerAway):
                raise answer
            for failed in answer.get("Failed", []):
                log.debug("message_not_mine", operation=operation, code=failed.get("Code"))
