"""Old jobs leave by the week: what is to be kept of one is copied, the rest goes with the tables it stands in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from app.domain.errors import DatabaseAway
from app.store.database import Session, away_named, sql

LOCK = 0x6F75746C_72657469  # "outl" "reti"
LOCK_MS = 100  # for each of the tables and partitions
SWAP_SECONDS_MAX = 2.0
KEYS_MAX = 5_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """What ended before these instants goes: jobs that are done or cancelled, and dead letters."""

    done: datetime
    dead: datetime


class Retention:
    """The steps of one run, on a session of its own. Every method raises `DatabaseAway`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def alone(self) -> bool:
        """Whether nobody else retires now; nobody else will, while the session lives."""
        async with away_named():
            return await self._session.fetchval(sql("retire_alone"), LOCK)

    async def weeks(self, bounds: Bounds) -> list[str]:
        """The weeks to look through, such as `2026w05`, oldest first."""
        async with away_named():
            return [row["week"] for row in await self._session.fetch(sql("retirable"), bounds.done)]

    async def copy(self, week: str, bounds: Bounds) -> int:
        """Copies what is to be kept, while all goes on; how many jobs that are."""
        async with away_named():
            return await self._session.fetchval(sql("retire_copy"), week, bounds.done, bounds.dead)

    async def drop_keys(self, week: str) -> int:
        """Drops the idempotency keys of the jobs that go, a few thousand looks a statement; how many."""
        after, gone = UUID(int=0), 0
        while True:
            async with away_named():
                row = await self._session.fetchrow(sql("retire_keys"), after, KEYS_MAX, week)
            assert row is not None
            gone += row["gone"]
            if row["last"] is None:
                return gone
            after = row["last"]

    async def swap(self, week: str, bounds: Bounds) -> int | None:
        """Exchanges the week's tables for what was copied; how many jobs are kept.

        None: nothing was changed, as somebody held one of the tables for longer than 100 ms, or all took longer than
        2 s. Nobody waits for longer than that because of it.
        """
        try:
            async with away_named():
                return await self._session.fetchval(
                    sql("retire_swap"), week, bounds.dead, LOCK_MS, timeout=SWAP_SECONDS_MAX
                )
        except DatabaseAway:
            if self._session.is_closed():
                raise
            return None

    async def drop(self) -> int:
        """Drops the tables that were exchanged, also those that an earlier run left; how many."""
        dropped = 0
        while True:
            async with away_named():
                name = await self._session.fetchval(sql("drop_retired"))
            if name is None:
                return dropped
            dropped += 1
