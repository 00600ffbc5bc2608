"""Keeps streams and the relay's memory of them true: entries of workers that are gone, lost and unowned ones."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from app.domain.errors import DatabaseAway
from app.settings import Settings
from app.store.relay import OutboxUpkeep
from app.telemetry import log
from app.transport.base import Publisher
from workers.relaying.lane import Lane

CONSUMERS_SECONDS = 0.25


class Mender:
    """Runs inside the dispatcher's pass: what it takes out must not be seen waiting by a scan already under way."""

    def __init__(self, settings: Settings, publisher: Publisher, upkeep: OutboxUpkeep) -> None:
        self._republish_seconds = settings.republish_seconds
        self._publisher = publisher
        self._upkeep = upkeep
        self._consumers_at = self._check_at = float("-inf")

    def hurry(self) -> None:
        """The next pass checks every lane."""
        self._check_at = float("-inf")

    async def run_once(self, lanes: Collection[Lane], now: float) -> None:
        """Mends what is due by the monotonic time `now`. Raises `BrokerAway`."""
        check = now - self._check_at >= self._republish_seconds
        if check or now - self._consumers_at >= CONSUMERS_SECONDS:
            self._consumers_at = now
            for lane in lanes:
                lane.memory.purge(now, whole=False)
            await self._clear_gone([lane for lane in lanes if check or lane.attended])
        if check:
            self._check_at = now
            for lane in lanes:
                await self._check(lane, now)

    async def _clear_gone(self, lanes: Collection[Lane]) -> None:
        """What a worker that is gone had in hand is published again at once."""
        strangers: list[tuple[Lane, UUID]] = []
        for lane in lanes:
            consumers = await self._publisher.consumers(lane.queue)
            strangers += [(lane, consumer) for consumer in consumers if consumer not in lane.workers]
        if not strangers:
            return
        try:
            gone = set(await self._upkeep.gone_workers(sorted({consumer for _, consumer in strangers})))
        except DatabaseAway as error:
            log.warning("consumers_not_cleared", error=str(error))
            return
        for lane, consumer in strangers:
            if consumer in gone:
                removed = await self._publisher.clear_consumer(lane.queue, consumer)
                lane.forget(removed)
                log.info("consumer_cleared", queue=lane.queue, worker=str(consumer), entries=len(removed))

    async def _check(self, lane: Lane, now: float) -> None:
        """What vanished from the stream, or was delivered and is pending for nobody, no longer counts as there."""
        lane.memory.rest(await self._publisher.missing(lane.queue, lane.memory.doubtful(now)))
        unowned = await self._publisher.sweep_unowned(lane.queue)
        if unowned:
            lane.forget(unowned)
            log.warning("unowned_entries_removed", queue=lane.queue, entries=len(unowned))
        lane.memory.purge(now)
        if lane.idle and await self._publisher.drop_unused(lane.queue):
            log.debug("stream_dropped", queue=lane.queue)
