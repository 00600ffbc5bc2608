"""`outlast audit`: the invariants of the record, then what the broker keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict

from app.cli.exits import ExitCode, absence, say
from app.cli.formats import Format, Row, show_document, show_rows
from app.domain.errors import BrokerAway
from app.domain.findings import Finding
from app.domain.views import dump
from app.settings import Settings
from app.store.audit import run_checks
from app.store.database import Database
from workers.broker_audit import broker_findings

TITLES = ("check", "job", "detail")
STATEMENT_SECONDS_MAX = 600.0


def run(settings: Settings, output: Format) -> int:
    """Prints what is broken, job by job. 0: nothing; 8: something; 9: nothing known, but the broker is away.

    JSON is `{"ok", "findings": [{"check", "job_id", "detail"}]}`. Raises `DatabaseAway`.
    """
    findings, broker_away = asyncio.run(_audit(settings))
    _show(output, findings)
    if broker_away is not None:
        say(f"outlast: what the broker keeps was not checked: {absence(broker_away)}")
    if findings:
        say(f"{len(findings)} finding(s)")
        return ExitCode.INVARIANT_BROKEN
    if broker_away is not None:
        say("the record is whole")
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


def _show(output: Format, findings: Sequence[Finding]) -> None:
    if output is Format.JSON:
        show_document(dump({"ok": not findings, "findings": [asdict(finding) for finding in findings]}))
        return
    rows = [Row(str(one.job_id or "-"), dump(asdict(one)), (one.check, one.job_id, one.detail)) for one in findings]
    if rows or output is not Format.TABLE:
        show_rows(output, TITLES, rows)
