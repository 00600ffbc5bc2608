"""One queue as the relay sees it: who serves it, what waits for it, what its stream holds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from uuid import UUID

from app.domain.errors import BrokerAway
from app.domain.window import window
from app.failpoints import Point, reach
from app.store.fleet import Live
from app.store.relay import PRIORITIES, Look, Waiting
from app.transport.base import Delivery, Published, Publisher
from workers.relaying.stream_memory import Fence, StreamMemory

LATE_COMMIT_MS = 1_000  # what a look reads again: while a snapshot is held open, dead rows too
ROOM_SPARE = 8
RATE_SECONDS = 1.0


class Lane:
    """The state of one queue. Times are monotonic seconds."""

    def __init__(self, queue: str, republish_seconds: float) -> None:
        self.queue = queue
        self.memory = StreamMemory(republish_seconds)
        self.workers: frozenset[UUID] = frozenset()
        self.looked_at = float("-inf")
        self._scanned_at = float("-inf")
        self._slots = 0
        self._kinds: frozenset[str] | None = None
        self._buffer: list[Waiting] = []
        self._length = 0
        self._departures: deque[tuple[float, int]] = deque()
        self._departed_lately = 0
        self._marks = [0] * PRIORITIES
        self._newest_ms = 0

    @property
    def attended(self) -> bool:
        """Live workers read this queue's stream."""
        return bool(self.workers)

    @property
    def idle(self) -> bool:
        """Nobody serves it and nothing is known to be in its stream."""
        return not self.attended and not self._buffer and not len(self.memory)

    def serve(self, workers: Sequence[Live]) -> None:
        """The live workers that read this queue's stream now.

        A kind goes to the stream only while all of them know it: who does not would acknowledge it away.
        """
        self.workers = frozenset(worker.id for worker in workers)
        self._slots = sum(worker.slots for worker in workers if not worker.draining)
        self._kinds = _known_to_all(workers) if workers else None

    def window(self, now: float) -> int:
        """How many entries the stream may hold."""
        return window(self._slots, self._departed(now))

    def patience(self, now: float) -> float:
        """Seconds until the stream may need more: none are sure while all that waits is in it, else an eighth of it."""
        departed = self._departed(now)
        if not self._buffer or not departed:
            return 0.0
        return window(self._slots, departed) / 8 / departed * RATE_SECONDS

    def look(self, now: float, *, full: bool) -> Look:
        """What to read: enough for a whole window beside what is in the stream already.

        The marks leave out where nothing was found waiting; what is older and new there (a late commit, a retry, a
        replay) is found by the full scan.
        """
        marks = [UUID(int=0)] * PRIORITIES if full else [UUID(int=ms << 80) for ms in self._marks]
        return Look(self.queue, self.window(now) + len(self.memory), marks, self._kinds)

    def fill(self, rows: Sequence[Waiting], look: Look, now: float, *, full: bool) -> None:
        """Takes the rows of a scan over. Rows that have a live entry, or rest, are left out."""
        self._scanned_at = now
        self._buffer = [row for row in rows if self.memory.may_publish((row.job_id, row.attempt), now)]
        oldest_ms: dict[int, int] = {}
        for row in rows:
            ms = row.job_id.int >> 80
            oldest_ms[row.priority] = min(ms, oldest_ms.get(row.priority, ms))
            self._newest_ms = max(self._newest_ms, ms)
        reached = rows[-1].priority if len(rows) == look.rows_max else PRIORITIES - 1
        for priority in range(reached + 1):
            mark = max(0, min(oldest_ms.get(priority, self._newest_ms), self._newest_ms) - LATE_COMMIT_MS)
            self._marks[priority] = mark if full else max(mark, self._marks[priority])

    def needs_rows(self, now: float, seconds: float) -> bool:
        """Nothing is left of the last scan, or it is older than this; first-priority rows may have come."""
        return self.attended and (not self._buffer or now - self._scanned_at >= seconds)

    def needs_look(self, now: float, seconds: float) -> bool:
        """There is something to publish, something that might get lost, or nobody has asked the broker for long."""
        return bool(self._buffer) or bool(self.memory) or now - self.looked_at >= seconds

    async def publish(self, publisher: Publisher, now: float) -> int | None:
        """Publishes what there is room for; how many entries came or left. None: the stream must be read first.

        Raises `BrokerAway`, also when the broker refuses to take more.
        """
        room = self.window(now)
        # More may have left since the last look than we know of.
        count = max(0, room - self._length) + room // 4 + ROOM_SPARE
        offered = [(row.job_id, row.attempt) for row in self._buffer[:count]]
        if offered:
            reach(Point.RELAY_BEFORE_PUBLISH, self.queue)
        answer = await publisher.publish(self.queue, offered, room)
        if answer.receipts:
            reach(Point.RELAY_AFTER_PUBLISH, self.queue)
        if answer.changed:
            return None
        moved = self._settle(offered, answer, now)
        if answer.refused is not None:
            raise BrokerAway(f"refused: {answer.refused}")
        return moved

    def learn(self, entries: Iterable[Delivery], now: float) -> int:
        """The stream holds exactly these entries; how many are gone without having been seen to leave.

        What was read to be published may be among them.
        """
        lost = self.memory.learn(entries, now)
        self._buffer.clear()
        self._length = len(self.memory)
        return lost

    def forget(self, receipts: Sequence[str]) -> None:
        """These entries were taken out unhandled; the rows are read and published again at once."""
        self.memory.forget(receipts)
        self._scanned_at = float("-inf")

    def _departed(self, now: float) -> int:
        while self._departures and self._departures[0][0] < now - RATE_SECONDS:
            self._departed_lately -= self._departures.popleft()[1]
        return self._departed_lately

    def _settle(self, offered: Sequence[Fence], answer: Published, now: float) -> int:
        count = sum(receipt is not None for receipt in answer.receipts)
        departed = max(0, self._length + count - answer.length)
        self._length = answer.length
        self.looked_at = now
        del self._buffer[: len(answer.receipts)]
        self.memory.published(offered, answer.receipts, now)
        self.memory.departed(answer.oldest)
        if departed:
            self._departures.append((now, departed))
            self._departed_lately += departed
        return count + departed


def _known_to_all(workers: Sequence[Live]) -> frozenset[str]:
    known = workers[0].kinds
    for worker in workers[1:]:
        known &= worker.kinds
    return known
