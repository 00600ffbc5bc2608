"""The leader's main work: from the outbox to the streams, as much as the workers of each queue can take.

Nothing is marked in PostgreSQL, so there is nothing to lose: what waits is read again and again, and a memory of what
each stream holds keeps a row from being published twice. One pass is strictly sequential, mend, scan, publish,
because "seen waiting after its entry was gone" is what tells a row that needs a new entry from one just claimed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from app.domain.errors import DatabaseAway
from app.settings import Settings
from app.store.fleet import Fleet, Live
from app.store.relay import Leadership, OutboxUpkeep
from app.telemetry import log
from app.transport.base import Publisher
from workers.relaying.lane import Lane
from workers.relaying.mender import Mender

FLEET_SECONDS = 0.25
FULL_SCAN_SECONDS = 0.05
FULL_SCAN_SHARE = 20  # a scan of everything takes at most a twentieth of the time
SCAN_SECONDS = 0.025
LOOK_SECONDS = 1.0
STREAMS_SECONDS = 30.0
UNATTENDED_MAX = 20
READ_MAX = 20_000


class Dispatcher:
    """Publishes while it leads. `run_once` is one pass."""

    def __init__(
        self,
        settings: Settings,
        leadership: Leadership,
        publisher: Publisher,
        fleet: Fleet,
        upkeep: OutboxUpkeep,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._leadership = leadership
        self._publisher = publisher
        self._fleet = fleet
        self._mender = Mender(settings, publisher, upkeep)
        self._clock = clock
        self._lanes: dict[str, Lane] = {}
        self._fleet_at = self._streams_at = self._full_at = self._full_ended_at = float("-inf")
        self._full_seconds = 0.0

    def forget(self) -> None:
        """Lets go of what it remembers: the error that ended its term holds on to every lane until somebody looks."""
        for lane in self._lanes.values():
            lane.memory.clear()

    def look_again(self) -> None:
        """Something old became due: everything is read next, unless such reading takes half of the time already."""
        self._full_at = min(self._full_at, self._full_ended_at + self._full_seconds)

    def patience(self) -> float:
        """Seconds until a stream may need more."""
        now = self._clock()
        return min((lane.patience(now) for lane in self._lanes.values() if lane.attended), default=0.0)

    async def run_once(self) -> int:
        """One pass; how many entries came into the streams or left them.

        Raises `DatabaseAway` when the leading session has ended, `BrokerAway` when the broker is gone or refuses.
        """
        await self._see_fleet()
        await self._find_streams()
        await self._mender.run_once(self._lanes.values(), self._clock())
        await self._scan()
        return await self._publish()

    async def _see_fleet(self) -> None:
        now = self._clock()
        if now - self._fleet_at < FLEET_SECONDS:
            return
        try:
            live = await self._fleet.live(self._settings.lease_seconds)
        except DatabaseAway as error:
            log.warning("fleet_not_seen", error=str(error))
            return
        self._fleet_at = now
        readers = _readers(live)
        for queue in readers:
            self._lane(queue)
        for lane in self._lanes.values():
            lane.serve(readers.get(lane.queue, ()))

    async def _find_streams(self) -> None:
        """Meets the streams it does not know, first of all as a new leader, and has them checked at once.

        A leader starts from what the streams hold, so a change of leader repeats nothing.
        """
        now = self._clock()
        if now - self._streams_at < STREAMS_SECONDS:
            return
        for queue in await self._publisher.queues():
            if queue not in self._lanes or self._streams_at == float("-inf"):
                await self._learn(self._lane(queue))
                self._mender.hurry()
        self._streams_at = now

    async def _scan(self) -> None:
        now = self._clock()
        full = now >= self._full_at
        if full:
            waiting = await self._leadership.queues()
            self._keep(waiting)
            lanes = list(self._lanes.values())
        else:
            lanes = [lane for lane in self._lanes.values() if lane.needs_rows(now, SCAN_SECONDS)]
        await self._read(lanes, now, full=full)
        if full:
            self._full_ended_at = self._clock()
            self._full_seconds = self._full_ended_at - now
            self._full_at = self._full_ended_at + max(FULL_SCAN_SECONDS, self._full_seconds * FULL_SCAN_SHARE)

    async def _read(self, lanes: Sequence[Lane], now: float, *, full: bool = False) -> None:
        if not lanes:
            return
        looks = [lane.look(now, full=full) for lane in lanes]
        found = await self._leadership.scan(looks)
        for lane, look in zip(lanes, looks, strict=True):
            lane.fill(found[lane.queue], look, now, full=full)

    def _keep(self, waiting: Sequence[str]) -> None:
        kept = set(waiting)
        self._lanes = {queue: lane for queue, lane in self._lanes.items() if queue in kept or not lane.idle}
        for queue in waiting:
            self._lane(queue)

    async def _publish(self) -> int:
        now = self._clock()
        attended = [lane for lane in self._lanes.values() if lane.attended and lane.needs_look(now, LOOK_SECONDS)]
        others = [lane for lane in self._lanes.values() if not lane.attended and lane.looked_at <= now - LOOK_SECONDS]
        moved = 0
        for lane in attended + others[:UNATTENDED_MAX]:
            moved += await self._publish_lane(lane)
        return moved

    async def _publish_lane(self, lane: Lane) -> int:
        moved = await lane.publish(self._publisher, self._clock())
        if moved is None:
            await self._learn(lane)
            await self._read([lane], self._clock())  # what was lost comes before what was next
            moved = await lane.publish(self._publisher, self._clock())
        return moved or 0

    async def _learn(self, lane: Lane) -> None:
        entries = await self._publisher.read_all(lane.queue, READ_MAX)
        lost = lane.learn(entries, self._clock())
        if lost:
            log.info("stream_read_anew", queue=lane.queue, gone=lost, entries=len(entries))

    def _lane(self, queue: str) -> Lane:
        lane = self._lanes.get(queue)
        if lane is None:
            lane = self._lanes[queue] = Lane(queue, self._settings.republish_seconds)
        return lane


def _readers(live: Sequence[Live]) -> dict[str, list[Live]]:
    """The workers that read each queue's stream."""
    readers: dict[str, list[Live]] = {}
    for worker in live:
        if worker.role == "worker" and worker.transport != "pg":
            for queue in worker.queues:
                readers.setdefault(queue, []).append(worker)
    return readers
