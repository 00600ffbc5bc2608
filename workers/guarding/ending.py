"""Ends loops that are to stop.

One cancel may be lost: what is raised while it passes through, by a rollback on a connection that was cut in the middle
of a statement for example, takes its place, and a loop that expects such errors goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

AGAIN_SECONDS = 0.5


async def end(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancels the tasks until every one of them has ended, however it ended."""
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=AGAIN_SECONDS)
    await asyncio.gather(*tasks, return_exceptions=True)
