"""The relay's side of Redis Streams, and the auditor's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID

from app.settings import Settings
from app.transport import keys
from app.transport.base import Delivery, Entry, EntryState, Published
from app.transport.redis_client import Argument, RedisClient
from app.transport.redis_entries import delivery, fence_of, job_named_in

CONNECTIONS_MAX = 4
PAGE = 500
NOTHING = "0-0"
UNKNOWN = Published([], 0, None, changed=True)


class RedisPublisher:
    """Publishes, reads and mends streams. `app.transport.base.Publisher` says what each method promises."""

    def __init__(self, settings: Settings) -> None:
        self._client = RedisClient(settings, connections_max=CONNECTIONS_MAX)
        self._last: dict[str, str] = {}

    async def publish(self, queue: str, rows: Sequence[tuple[UUID, int]], window: int) -> Published:
        # Taken out until the reply is here: after a lost one nobody knows what the stream holds.
        known = self._last.pop(queue, None)
        if known is None:
            return UNKNOWN
        arguments: list[Argument] = [keys.GROUP, window, known]
        for job_id, attempt in rows:
            arguments += (str(job_id), attempt)
        changed, length, oldest, refusal, last, *receipts = await self._client.script(
            "publish", [keys.stream(queue)], arguments
        )
        if changed:
            return UNKNOWN
        if not refusal:
            self._last[queue] = last.decode()
        return Published(
            [receipt.decode() for receipt in receipts],
            length,
            oldest.decode() or None,
            refused=refusal.decode() or None,
        )

    async def missing(self, queue: str, receipts: Sequence[str]) -> list[str]:
        gone: list[str] = []
        for start in range(0, len(receipts), PAGE):
            page = receipts[start : start + PAGE]
            gone += [receipt.decode() for receipt in await self._client.script("missing", [keys.stream(queue)], page)]
        return gone

    async def read_all(self, queue: str, limit: int) -> list[Delivery]:
        self._last.pop(queue, None)
        found: list[Delivery] = []
        after, seen = "-", 0
        while True:
            last, *entries = await self._client.script("read", [keys.stream(queue)], [after, PAGE])
            found += [one for entry in entries if (one := delivery(queue, entry)) is not None]
            seen += len(entries)
            if len(entries) < PAGE or seen >= limit:
                break
            after = "(" + entries[-1][0].decode()
        self._last[queue] = last.decode()
        return found

    async def queues(self) -> list[str]:
        names: set[str] = set()
        cursor: Argument = 0
        while True:
            cursor, found = await self._client.command(
                "SCAN", cursor, "MATCH", keys.STREAM_PREFIX + "*", "COUNT", 1_000, "TYPE", "stream"
            )
            names.update(keys.queue_of(key.decode(errors="replace")) for key in found)
            if int(cursor) == 0:
                return sorted(names)

    async def consumers(self, queue: str) -> list[UUID]:
        found: list[UUID] = []
        for name in await self._client.script("consumers", [keys.stream(queue)], [keys.GROUP]):
            try:
                found.append(UUID(name.decode("ascii")))
            except ValueError:
                continue
        return found

    async def clear_consumer(self, queue: str, worker_id: UUID) -> list[str]:
        removed: list[str] = []
        while True:
            page = await self._client.script("clear_consumer", [keys.stream(queue)], [keys.GROUP, str(worker_id), PAGE])
            removed += [receipt.decode() for receipt in page]
            if len(page) < PAGE:
                return removed

    async def sweep_unowned(self, queue: str) -> list[str]:
        return [entry.receipt async for entry in self._entries(queue, sweep=True) if entry.state is EntryState.UNOWNED]

    async def drop_unused(self, queue: str) -> bool:
        dropped = await self._client.script("drop_unused", [keys.stream(queue)], [])
        if dropped:
            self._last.pop(queue, None)
        return bool(dropped)

    async def inspect(self, queue: str, limit: int) -> list[Entry]:
        found: list[Entry] = []
        async for entry in self._entries(queue, sweep=False):
            found.append(entry)
            if len(found) == limit:
                break
        return found

    async def remove(self, queue: str, entries: Sequence[Entry]) -> int:
        seen = [word for entry in entries for word in (entry.receipt, entry.consumer or "")]
        return await self._client.script("remove", [keys.stream(queue)], [keys.GROUP, *seen])

    async def close(self) -> None:
        await self._client.close()

    async def _entries(self, queue: str, *, sweep: bool) -> AsyncIterator[Entry]:
        after = "-"
        while True:
            now, *rows = await self._client.script(
                "inspect", [keys.stream(queue)], [keys.GROUP, after, PAGE, int(sweep)]
            )
            for row in rows:
                yield _entry(queue, row, int(now))
            if len(rows) < PAGE:
                return
            after = "(" + rows[-1][0].decode()


def _entry(queue: str, row: Sequence[Any], now_ms: int) -> Entry:
    receipt, fields, state, consumer, idle_ms, deliveries = row
    fence = fence_of(fields)
    pending = state == b"pending"
    return Entry(
        queue,
        receipt.decode(),
        EntryState(state.decode()),
        fence[0] if fence else job_named_in(fields),
        fence[1] if fence else None,
        (now_ms - int(receipt.split(b"-")[0])) / 1_000,
        consumer.decode(errors="replace") if pending else None,
        idle_ms / 1_000 if pending else None,
        deliveries,
    )
