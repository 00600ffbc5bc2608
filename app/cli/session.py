"""Operator commands work on the database directly, so they work while the API or Redis is down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from app import failpoints
from app.cli.exits import read_settings
from app.settings import Settings
from app.store.database import Database

T = TypeVar("T")


def on_database(work: Callable[[Database, Settings], Awaitable[T]]) -> T:
    """Runs `work` with a pool of its own and returns what it returns. Raises `DatabaseAway`, `Refused`."""
    settings = read_settings()
    failpoints.arm(settings)

    async def run() -> T:
        db = await Database.open(settings, "cli", size_max=4)
        try:
            return await work(db, settings)
        finally:
            await db.close()

    return asyncio.run(run())
