"""`outlast audit`: the invariants of the record, then what the broker keeps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from app.cli.exits import ExitCode, absence, say
from app.cli.formats import Format, Row, show_document, show_rows
from app.domain.errors import BrokerAway
from app.domain.findings import Finding
from app.domain.instants import uuid_floor
from app.domain.views import dump
from app.settings import Settings
from app.store.audit import ALL, run_checks
from app.store.database import Database
from workers.broker_audit import Stuck, stuck_entries

TITLES = ("check", "job", "detail")
STATEMENT_SECONDS_MAX = 600.0


@dataclass(frozen=True, slots=True)
class Look:
    """What one audit saw. `broker_away`: the broker could not be asked."""

    record: Sequence[Finding]
    stuck: Sequence[Stuck]
    broker_away: BrokerAway | None

    @property
    def findings(self) -> list[Finding]:
        return [*self.record, *(one.finding for one in self.stuck)]

    def close(self) -> ExitCode:
        """Says in words what was seen; the exit code of it."""
        if self.broker_away is not None:
            say(f"outlast: what the broker keeps was not checked: {absence(self.broker_away)}")
        if self.findings:
            say(f"{len(self.findings)} finding(s)")
            return ExitCode.INVARIANT_BROKEN
        if self.broker_away is not None:
            say("the record is whole")
            return ExitCode.DEPENDENCY_AWAY
        say("nothing is broken")
        return ExitCode.OK


def run(settings: Settings, output: Format, since: UUID) -> int:
    """Prints what is broken, job by job. 0: nothing; 8: something; 9: nothing known, but the broker is away.

    JSON is `{"ok", "findings": [{"check", "job_id", "detail"}]}`. Raises `DatabaseAway`.
    """
    seen = asyncio.run(_audit(settings, since))
    show(output, seen.findings)
    return seen.close()


def first_of(since: datetime | None) -> UUID:
    """The least id of a job submitted since then; of all jobs without a time."""
    return ALL if since is None else uuid_floor(since)


@asynccontextmanager
async def patient(settings: Settings) -> AsyncIterator[Database]:
    """A pool whose statements may take as long as a long history needs."""
    slow = settings.model_copy(update={"database_timeout_seconds": STATEMENT_SECONDS_MAX})
    db = await Database.open(slow, "audit", size_max=2)
    try:
        yield db
    finally:
        await db.close()


async def look(db: Database, settings: Settings, since: UUID) -> Look:
    """One audit of the jobs from `since` on, and of all that the broker keeps. Raises `DatabaseAway`."""
    record = await run_checks(db, since)
    if settings.transport == "pg":
        return Look(record, [], None)
    try:
        return Look(record, await stuck_entries(db, settings), None)
    except BrokerAway as away:
        return Look(record, [], away)


def show(output: Format, findings: Sequence[Finding]) -> None:
    if output is Format.JSON:
        show_document(document(findings))
        return
    rows = [Row(str(one.job_id or "-"), dump(asdict(one)), (one.check, one.job_id, one.detail)) for one in findings]
    if rows or output is not Format.TABLE:
        show_rows(output, TITLES, rows)


def document(findings: Sequence[Finding]) -> str:
    return dump({"ok": not findings, "findings": [asdict(finding) for finding in findings]})


async def _audit(settings: Settings, since: UUID) -> Look:
    async with patient(settings) as db:
        return await look(db, settings, since)
