"""Which processes have joined since a moment: how a starting stack knows that it is up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from app.store.database import Database


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What has registered: live worker children, a relay that leads, every kind of theirs published."""

    workers: int
    led: bool
    kinds_published: bool


async def clock(db: Database) -> datetime:
    """The database's time. Raises `DatabaseAway`."""
    return await db.fetchval("clock")


async def arrivals(db: Database, since: datetime) -> Arrivals:
    """What has registered since a moment of the database's clock. Raises `DatabaseAway`."""
    row = await db.fetchrow("arrivals", since)
    assert row is not None
    return Arrivals(workers=row["workers"], led=row["led"], kinds_published=row["kinds_published"])
