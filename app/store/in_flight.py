"""Jobs that some process has yet to run, read from end to end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple
from uuid import UUID

from app.store.database import Database

PAGE = 1_000
FIRST = UUID(int=0)


class InFlight(NamedTuple):
    """`standing` is `waiting`, `running` or `dead`; `input` is JSON text."""

    job_id: UUID
    kind: str
    queue: str
    standing: str
    input: str


async def in_flight(db: Database, *, dead_too: bool) -> AsyncIterator[list[InFlight]]:
    """All of them, oldest first, a page at a time. What moves meanwhile may be missed. Raises `DatabaseAway`."""
    after = FIRST
    while True:
        page = [InFlight(*row) for row in await db.fetch("in_flight", after, PAGE, dead_too)]
        if page:
            yield page
            after = page[-1].job_id
        if len(page) < PAGE:
            return
