"""What the relay remembers of one queue's stream, so that one waiting row has at most one live entry.

A row is known by `(job id, attempt)`, which never comes back once it has left the outbox. Nothing here is a record:
a new leader starts from what it reads in the stream.

- *live*: published, and still in the stream as far as we know.
- *resting*: its entry was handed to a worker and is gone. As a rule the job was claimed with it. If the row still
  waits (the worker does not know the kind, say), it is published again, but not sooner than `REPUBLISH_SECONDS`
  after the last time, then twice that, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from app.transport.base import Delivery, place

INTERVAL_SECONDS_MAX = 300.0

Fence = tuple[UUID, int]


@dataclass(slots=True)
class _Sent:
    """`again_at` is the earliest time, in monotonic seconds, to publish the row again once its entry is gone."""

    receipt: str
    interval_seconds: float
    again_at: float
    wanted: bool = False


class StreamMemory:
    """The memory of one stream. Times are monotonic seconds."""

    def __init__(self, republish_seconds: float) -> None:
        self._republish_seconds = republish_seconds
        self._live: dict[Fence, _Sent] = {}
        self._resting: dict[Fence, _Sent] = {}

    def __len__(self) -> int:
        return len(self._live)

    def clear(self) -> None:
        """Remembers nothing."""
        self._live.clear()
        self._resting.clear()

    def may_publish(self, fence: Fence, now: float) -> bool:
        """Whether a row that waits in the outbox needs an entry now."""
        if fence in self._live:
            return False
        resting = self._resting.get(fence)
        if resting is None:
            return True
        resting.wanted = True
        return now >= resting.again_at

    def published(self, fences: Sequence[Fence], receipts: Sequence[str | None], now: float) -> None:
        """The first of these rows have these entries now, in their order; None has none, and may be published again."""
        again_at = now + self._republish_seconds  # one number for all of them: they are many
        for fence, receipt in zip(fences, receipts, strict=False):
            if receipt is None:
                continue
            before = self._resting.pop(fence, None)
            if before is None:
                self._live[fence] = _Sent(receipt, self._republish_seconds, again_at)
            else:
                interval = min(before.interval_seconds * 2, INTERVAL_SECONDS_MAX)
                self._live[fence] = _Sent(receipt, interval, now + interval)

    def learn(self, entries: Iterable[Delivery], now: float) -> int:
        """The stream was read: it holds exactly these. How many we thought live and are not among them."""
        known = self._live
        self._live = {}
        for entry in entries:
            fence = (entry.job_id, entry.attempt)
            before = known.get(fence) or self._resting.pop(fence, None)
            interval = before.interval_seconds if before is not None else self._republish_seconds
            again_at = before.again_at if before is not None else now + interval
            self._live[fence] = _Sent(entry.receipt, interval, again_at)
        return sum(fence not in self._live for fence in known)

    def departed(self, oldest: str | None) -> int:
        """Everything before the stream's oldest entry, or everything, is gone; how many rest now."""
        first = None if oldest is None else place(oldest)
        gone: list[Fence] = []
        for fence, sent in self._live.items():
            if first is not None and place(sent.receipt) >= first:
                break
            gone.append(fence)
        for fence in gone:
            self._resting[fence] = self._live.pop(fence)
        return len(gone)

    def doubtful(self, now: float) -> list[str]:
        """The receipts of live entries that are old enough to ask the stream about."""
        return [sent.receipt for sent in self._live.values() if now >= sent.again_at]

    def rest(self, receipts: Iterable[str]) -> None:
        """The stream no longer holds these."""
        gone = set(receipts)
        for fence in [fence for fence, sent in self._live.items() if sent.receipt in gone]:
            self._resting[fence] = self._live.pop(fence)

    def forget(self, receipts: Iterable[str]) -> None:
        """These were taken out unhandled: what still waits is published again at once."""
        gone = set(receipts)
        if not gone:
            return
        for rows in (self._live, self._resting):
            for fence in [fence for fence, sent in rows.items() if sent.receipt in gone]:
                del rows[fence]

    def purge(self, now: float, *, whole: bool = True) -> None:
        """Drops resting rows that nobody has seen waiting; the wanted ones keep their interval a while longer.

        Not `whole`, it looks as far as the first that is to stay: rows come to rest about in the order they leave.
        """
        over: list[Fence] = []
        for fence, sent in self._resting.items():
            if now >= sent.again_at + (sent.interval_seconds if sent.wanted else 0):
                over.append(fence)
            elif not whole:
                break
        for fence in over:
            del self._resting[fence]
