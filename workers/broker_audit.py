"""What the broker keeps that nobody will ever take away.

Losing such an entry loses no job, since PostgreSQL is the record; but somebody made it who should not have, or
something that clears entries away does not run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from app.domain.findings import Finding
from app.domain.standing import Standing
from app.domain.states import State
from app.settings import Settings
from app.store import operations
from app.store.database import Database
from app.store.fleet import Fleet, Live
from app.store.relay import OutboxUpkeep
from app.transport.base import Entry, EntryState, Publisher
from app.transport.connect import publisher

ENTRIES_MAX = 10_000
WATCH_SECONDS = 3.0
LOOK_SECONDS = 0.5

Place = tuple[str, str]
"""Queue and receipt of an entry."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """An entry that stays, and why. `held`: by a worker that lives, so it is not ours to take away."""

    entry: Entry
    why: str
    held: bool = False

    @property
    def finding(self) -> Finding:
        return Finding(
            "broker", self.entry.job_id, f"entry {self.entry.receipt} of queue {self.entry.queue} {self.why}"
        )


async def broker_findings(db: Database, settings: Settings, *, watch_seconds: float | None = None) -> list[Finding]:
    """What `stuck_entries` finds, told as the record's findings are."""
    return [stuck.finding for stuck in await stuck_entries(db, settings, watch_seconds=watch_seconds)]


async def stuck_entries(db: Database, settings: Settings, *, watch_seconds: float | None = None) -> list[Stuck]:
    """Entries that stay although nobody has them to work on. Those in passing are gone within the watch.

    While a relay leads, the watch is long enough for it to clear away what a worker that ended left behind.
    Raises `DatabaseAway` and `BrokerAway`.
    """
    broker = publisher(settings)
    try:
        kept = await _stuck(db, broker, settings)
        end = time.monotonic() + (await _patience(db, settings) if watch_seconds is None else watch_seconds)
        while kept and time.monotonic() < end:
            await asyncio.sleep(LOOK_SECONDS)
            now = await _stuck(db, broker, settings)
            kept = {place: stuck for place, stuck in now.items() if place in kept}
        return list(kept.values())
    finally:
        await broker.close()


async def _patience(db: Database, settings: Settings) -> float:
    led = any(process.leader for process in await Fleet(db).live(settings.lease_seconds))
    return max(WATCH_SECONDS, settings.republish_seconds + LOOK_SECONDS) if led else WATCH_SECONDS


async def _stuck(db: Database, broker: Publisher, settings: Settings) -> dict[Place, Stuck]:
    """What looks stuck at this moment."""
    entries = [entry for queue in await broker.queues() for entry in await broker.inspect(queue, ENTRIES_MAX)]
    if not entries:
        return {}
    surroundings = _Surroundings(
        served=_served(await Fleet(db).live(settings.lease_seconds)),
        gone=set(await OutboxUpkeep(db).gone_workers(sorted(_consumers(entries)))),
        standings=await operations.standing(db, list({e.job_id for e in entries if e.job_id is not None})),
        idle_seconds_max=2 * settings.lease_seconds,
    )
    looked = {(entry.queue, entry.receipt): surroundings.stuck(entry) for entry in entries}
    return {place: stuck for place, stuck in looked.items() if stuck is not None}


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """`served`: queues with live workers. `gone`: consumers that nobody knows, or that ended and were settled."""

    served: Collection[str]
    gone: Collection[UUID]
    standings: Mapping[UUID, Standing]
    idle_seconds_max: float

    def stuck(self, entry: Entry) -> Stuck | None:
        """The entry, when nobody will take it away; None when somebody may."""
        match entry.state:
            case EntryState.UNOWNED:
                return Stuck(entry, "was delivered and is pending for nobody")
            case EntryState.PENDING:
                return self._pending(entry)
            case EntryState.UNREAD:
                why = self._why_unread(entry)
                return None if why is None else Stuck(entry, why)

    def _pending(self, entry: Entry) -> Stuck | None:
        consumer = _as_id(entry.consumer)
        if consumer is None or consumer in self.gone:
            return Stuck(entry, f"is pending for {entry.consumer}, who is no worker that could still have it")
        idle = entry.idle_seconds or 0.0
        if entry.queue in self.served and idle > self.idle_seconds_max:
            why = f"is pending for {entry.consumer}, idle for {idle:.0f} s, delivered {entry.deliveries} times"
            return Stuck(entry, why, held=True)
        return None

    def _why_unread(self, entry: Entry) -> str | None:
        """A job that was cancelled or expired leaves its entry to the next reader, and that is no fault."""
        if entry.attempt is None or entry.job_id is None:
            return "was never read and is not one of ours"
        standing = self.standings.get(entry.job_id)
        if standing is None:
            return "was never read and is about a job that does not exist"
        return "was never read and is about a job that is done" if standing.state is State.DONE else None


def _served(live: Collection[Live]) -> set[str]:
    return {queue for process in live if process.role == "worker" for queue in process.queues}


def _consumers(entries: Collection[Entry]) -> set[UUID]:
    return {consumer for entry in entries if (consumer := _as_id(entry.consumer)) is not None}


def _as_id(consumer: str | None) -> UUID | None:
    try:
        return None if consumer is None else UUID(consumer)
    except ValueError:
        return None
