"""A worker's side of Redis Streams."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any
from uuid import UUID

from app.settings import Settings
from app.telemetry import log
from app.transport import keys
from app.transport.base import Delivery
from app.transport.redis_client import REPLY_SECONDS, Argument, NoGroup, RedisClient
from app.transport.redis_entries import delivery

CONNECTIONS_MAX = 4
PAGE = 500
MENDS_MAX = 3  # within one call; a group that is lost more often is an outage, and said
START = "0-0"


class RedisSubscriber:
    """Reads and answers for one worker. `app.transport.base.Subscriber` says what each method promises."""

    def __init__(self, settings: Settings, worker_id: UUID, queues: Sequence[str]) -> None:
        self._me = str(worker_id)
        self._queues = list(queues)
        self._block_seconds_max = settings.block_seconds
        # The reply to a blocking read may take as long as the read may block, and never shares a connection.
        self._reader = RedisClient(settings, connections_max=1, reply_seconds=settings.block_seconds + REPLY_SECONDS)
        self._client = RedisClient(settings, connections_max=CONNECTIONS_MAX)
        self._reading: asyncio.Task[list[Delivery]] | None = None
        self._cursors = dict.fromkeys(self._queues, START)
        self.nonsense = 0

    async def read(self, count: int, block_seconds: float) -> list[Delivery]:
        # A read that is cancelled may already have been answered, and what it was given would lie in our pending
        # list unseen. So it is never cancelled: it goes on, and the next caller gets its answer.
        if self._reading is None:
            self._reading = asyncio.create_task(self._read(count, min(block_seconds, self._block_seconds_max)))
        reading = self._reading
        await asyncio.wait([reading])
        self._reading = None
        return reading.result()

    async def acknowledge(self, deliveries: Sequence[Delivery]) -> None:
        await self._tell("acknowledge", deliveries)

    async def renew(self, deliveries: Sequence[Delivery]) -> None:
        await self._tell("renew", deliveries)

    async def reclaim(self, count: int, min_idle_seconds: float) -> list[Delivery]:
        found: list[Delivery] = []
        for queue in self._queues:
            left = count - len(found)
            if left > 0:
                found += await self._mending(partial(self._reclaim, queue, left, min_idle_seconds))
        self._rotate()
        return found

    async def close(self) -> None:
        if self._reading is not None:
            # What this loses sight of is pending for a worker that has left: the relay clears and publishes it again.
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self._reader.close()
        await self._client.close()

    async def _read(self, count: int, block_seconds: float) -> list[Delivery]:
        if len(self._queues) == 1:
            return await self._mending(partial(self._wait, count, block_seconds))
        # COUNT holds for each stream of a command, so several are first taken from in turn, then waited for.
        self._rotate()
        taken = await self._mending(partial(self._take, count))
        return taken or await self._mending(partial(self._wait, 1, block_seconds))

    async def _take(self, count: int) -> list[Delivery]:
        streams = [keys.stream(queue) for queue in self._queues]
        return await self._ours(await self._reader.script("take", streams, [keys.GROUP, self._me, count]))

    async def _wait(self, count: int, block_seconds: float) -> list[Delivery]:
        streams = [keys.stream(queue) for queue in self._queues]
        block_ms = max(1, round(block_seconds * 1_000))  # 0 would be for ever
        command: list[Argument] = ["XREADGROUP", "GROUP", keys.GROUP, self._me, "COUNT", count, "BLOCK", block_ms]
        return await self._ours(await self._reader.command(*command, "STREAMS", *streams, *[">"] * len(streams)) or [])

    async def _reclaim(self, queue: str, count: int, min_idle_seconds: float) -> list[Delivery]:
        cursor, *entries = await self._client.script(
            "reclaim",
            [keys.stream(queue)],
            [keys.GROUP, self._me, round(min_idle_seconds * 1_000), self._cursors[queue], count],
        )
        self._cursors[queue] = cursor.decode()
        return await self._ours([[keys.stream(queue).encode(), entries]])

    async def _ours(self, streams: Sequence[Any]) -> list[Delivery]:
        """The deliveries in a reply `[[stream, [entry, ...]], ...]`; entries that are none are removed."""
        found: list[Delivery] = []
        for name, entries in streams:
            queue = keys.queue_of(name.decode())
            receipts: list[str] = []
            for entry in entries:
                one = delivery(queue, entry)
                if one is None:
                    receipts.append(entry[0].decode())
                else:
                    found.append(one)
            if receipts:
                self.nonsense += len(receipts)
                log.warning("nonsense_entries_removed", queue=queue, entries=len(receipts), total=self.nonsense)
                await self._remove("acknowledge", queue, receipts)
        return found

    async def _tell(self, script: str, deliveries: Iterable[Delivery]) -> None:
        for queue, of_queue in groupby(sorted(deliveries, key=attrgetter("queue")), key=attrgetter("queue")):
            await self._remove(script, queue, [one.receipt for one in of_queue])

    async def _remove(self, script: str, queue: str, receipts: Sequence[str]) -> None:
        for start in range(0, len(receipts), PAGE):
            page = receipts[start : start + PAGE]
            await self._client.script(script, [keys.stream(queue)], [keys.GROUP, self._me, *page])

    async def _mending(self, call: Callable[[], Awaitable[list[Delivery]]]) -> list[Delivery]:
        """Calls; when a group is missing makes it and calls again: it may be lost while that call waits, too."""
        for _ in range(MENDS_MAX):
            try:
                return await call()
            except NoGroup:
                await self._make_groups()
        return await call()

    async def _make_groups(self) -> None:
        """Makes what is missing, at the first entry: what was published before the group must not be skipped."""
        for queue in self._queues:
            made = await self._client.script("make_group", [keys.stream(queue)], [keys.GROUP])
            if made:
                log.info("group_made", queue=queue)

    def _rotate(self) -> None:
        self._queues.append(self._queues.pop(0))
