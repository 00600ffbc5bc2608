"""The doorbell after a commit: losing it costs a poll, never a job."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from app.domain.errors import DatabaseAway
from app.store import operations
from app.store.database import Database


async def awaken(db: Database, queues: Collection[str]) -> None:
    """Tells relay and workers that these queues have work due. Never fails: the work is committed."""
    if queues:
        with suppress(DatabaseAway):
            await operations.wake_queues(db, list(queues))
