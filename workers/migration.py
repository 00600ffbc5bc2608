"""`outlast migrate`: the schema, and the kinds of handlers when they are named."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from app.cli.exits import say
from app.settings import Settings
from app.store.migrate import migrate


def run(settings: Settings, handlers: Sequence[str]) -> int:
    """Migrates, then publishes the kinds of `handlers`. Raises `DatabaseAway`."""
    migrate(settings)
    say("the database is at the newest revision")
    if handlers:
        published = asyncio.run(_publish(settings, handlers))
        say(f"published {', '.join(published)}")
    return 0


async def _publish(settings: Settings, handlers: Sequence[str]) -> list[str]:
    from app.store import kinds
    from app.store.database import Database
    from workers.registry import load

    registry = load(handlers)
    db = await Database.open(settings, "migrate")
    try:
        await kinds.publish(db, registry.published())
    finally:
        await db.close()
    return list(registry.names())
