"""`outlast audit --watch`: the audit again and again, told by what has changed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any
from uuid import UUID

from app.cli.audit_changes import Changes
from app.cli.exits import ExitCode
from app.cli.formats import Format
from app.domain.errors import DatabaseAway
from app.settings import Settings
from workers.audit import look, patient
from workers.guarding.ending import end


def run(settings: Settings, output: Format, since: UUID, interval_seconds: float) -> int:
    """Audits until SIGINT or SIGTERM. 8: something was found in all that time; 130: nothing.

    A line says what was found, another when it is gone; JSON is a line with all findings whenever they change. A
    server that goes away is waited for; one that is away at the start ends it. Raises `DatabaseAway`.
    """
    changes = Changes(output)
    asyncio.run(_until_told_to_stop(_watch(changes, settings, since, interval_seconds)))
    changes.close()
    return ExitCode.INVARIANT_BROKEN if changes.found else ExitCode.INTERRUPTED


async def _watch(changes: Changes, settings: Settings, since: UUID, interval_seconds: float) -> None:
    async with patient(settings) as db:
        seen = await look(db, settings, since)
        changes.see(seen.findings, seen.broker_away)
        while True:
            await asyncio.sleep(interval_seconds)
            try:
                seen = await look(db, settings, since)
                changes.see(seen.findings, seen.broker_away)
            except DatabaseAway as away:
                changes.miss(away)


async def _until_told_to_stop(work: Coroutine[Any, Any, None]) -> None:
    """Raises what `work` raises. One cancellation would not do: it is lost when a connection is had in that instant."""
    told = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    working, waiting = asyncio.create_task(work), asyncio.create_task(told.wait())
    await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if working.done():
        working.result()
    await end([working])
