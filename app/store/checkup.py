"""What a check-up reads of the database."""

from __future__ import annotations

from dataclasses import dataclass

from app.store.database import Database


@dataclass(frozen=True, slots=True)
class Checkup:
    """`server_version` as PostgreSQL counts (180000), `weeks_ahead` partitions after this week's.

    `default_used`: a job fell into the default partition. `dead_leaving` dead letters are near the end of
    their retention, counted to 10,000.
    """

    server_version: int
    revision: str | None
    weeks_ahead: int
    default_used: bool
    dead_leaving: int


async def checkup(db: Database, dead_retention_days: int, warning_days: int) -> Checkup:
    """Reads it. Raises `DatabaseAway`."""
    row = await db.fetchrow("doctor", dead_retention_days, min(warning_days, dead_retention_days))
    assert row is not None
    return Checkup(**row)
