"""Whether the schema is new enough for this version. A newer one is: revisions are safe while the old version runs."""

from __future__ import annotations

from app.domain.errors import DatabaseAway
from app.store.database import Session, away_named, sql

REVISIONS = ("0001", "0002", "0003", "0004")
HEAD = REVISIONS[-1]


async def refuse_older(session: Session) -> None:
    """Raises `DatabaseAway` for a schema that `outlast migrate` has yet to bring up to date."""
    async with away_named():
        found: str | None = await session.fetchval(sql("revision"))
    if found is None or found in REVISIONS[:-1]:
        raise DatabaseAway(f"the schema is at revision {found}, this version needs {HEAD}: run outlast migrate")
