"""The audit of the product as a judge of runs: its checks after each, the command itself at the end of a world."""

from __future__ import annotations

import asyncio

from app.settings import Settings
from app.store.audit import run_checks
from tests.chaos.records import Finding
from tests.processes import Stack
from workers.audit import patient
from workers.broker_audit import broker_findings


async def checks(settings: Settings) -> list[Finding]:
    """What the checks of record and broker find, asked straight of the servers."""
    async with patient(settings) as db:
        found = await run_checks(db)
        if settings.transport != "pg":
            found += await broker_findings(db, settings)
    return [Finding("audit", str(one.job_id), f"{one.check}: {one.detail}") for one in found]


async def command(stack: Stack) -> list[Finding]:
    """What `outlast audit` says, when it says anything but that nothing is broken."""
    ran = await asyncio.to_thread(stack.run, "audit")
    if ran.returncode == 0:
        return []
    return [Finding("audit", "", f"exit {ran.returncode}: {ran.stdout[-1_000:]}{ran.stderr[-500:]}")]
