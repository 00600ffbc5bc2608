"""`outlast audit`: the invariants of the record, and what the broker keeps that nobody will ever take away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict

from app.cli.exits import ExitCode, say
from app.cli.formats import Format, Row, show_document, show_rows
from app.domain.errors import BrokerAway
from app.domain.findings import Finding
from app.domain.views import dump
from app.settings import Settings
from app.store.audit import run_checks
from app.store.database import Database
from app.store.fleet import Fleet
from app.transport.base import Entry, EntryState, Publisher
from app.transport.connect import publisher

TITLES = ("check", "job", "detail")
STATEMENT_SECONDS_MAX = 600.0
ENTRIES_MAX = 10_000
WATCH_SECONDS = 3.0
LOOK_SECONDS = 0.5


def run(settings: Settings, output: Format) -> int:
    """Prints what is broken, job by job. 0: nothing; 8: something; 9: nothing known, but the broker is away.

    JSON is `{"ok", "findings": [{"check", "job_id", "detail"}]}`. Raises `DatabaseAway`.
    """
    findings, broker_away = asyncio.run(_audit(settings))
    _show(output, findings)
    if findings:
        say(f"{len(findings)} finding(s)")
        return ExitCode.INVARIANT_BROKEN
    if broker_away is not None:
        say(f"outlast: {broker_away}; the record is whole")
        return ExitCode.DEPENDENCY_AWAY
    say("nothing is broken")
    return ExitCode.OK


async def _audit(settings: Settings) -> tuple[list[Finding], BrokerAway | None]:
    patient = settings.model_copy(update={"database_timeout_seconds": STATEMENT_SECONDS_MAX})
    db = await Database.open(patient, "audit", size_max=2)
    try:
        findings = await run_checks(db)
        if settings.transport == "pg":
            return findings, None
        try:
            return findings + await broker_findings(db, settings), None
        except BrokerAway as away:
            return findings, away
    finally:
        await db.close()


async def broker_findings(db: Database, settings: Settings, *, watch_seconds: float = WATCH_SECONDS) -> list[Finding]:
    """Entries that stay although nobody holds them. Those in passing are gone within the watch.

    Raises `DatabaseAway` and `BrokerAway`.
    """
    broker = publisher(settings)
    try:
        kept = await _stuck(db, broker, settings)
        end = time.monotonic() + watch_seconds
        while kept and time.monotonic() < end:
            await asyncio.sleep(LOOK_SECONDS)
            now = await _stuck(db, broker, settings)
            kept = {key: entry for key, entry in now.items() if key in kept}
        return [_finding(entry) for entry in kept.values()]
    finally:
        await broker.close()


async def _stuck(db: Database, broker: Publisher, settings: Settings) -> dict[tuple[str, str], Entry]:
    """Entries pending for nobody; and, while workers live who would reclaim them, entries left idle for long."""
    idle_seconds_max = 2 * settings.lease_seconds
    live = await Fleet(db).live(settings.lease_seconds)
    served = {queue for process in live if process.role == "worker" for queue in process.queues}
    return {
        (entry.queue, entry.receipt): entry
        for queue in await broker.queues()
        for entry in await broker.inspect(queue, ENTRIES_MAX)
        if entry.state is EntryState.UNOWNED
        or (queue in served and entry.idle_seconds is not None and entry.idle_seconds > idle_seconds_max)
    }


def _finding(entry: Entry) -> Finding:
    where = f"entry {entry.receipt} of queue {entry.queue}"
    if entry.state is EntryState.UNOWNED:
        return Finding("broker", entry.job_id, f"{where} was delivered and is pending for nobody")
    held = f"pending for {entry.consumer}, idle for {entry.idle_seconds:.0f} s, delivered {entry.deliveries} times"
    return Finding("broker", entry.job_id, f"{where} is {held}")


def _show(output: Format, findings: Sequence[Finding]) -> None:
    if output is Format.JSON:
        show_document(dump({"ok": not findings, "findings": [asdict(finding) for finding in findings]}))
        return
    rows = [Row(str(one.job_id or "-"), dump(asdict(one)), (one.check, one.job_id, one.detail)) for one in findings]
    if rows or output is not Format.TABLE:
        show_rows(output, TITLES, rows)
