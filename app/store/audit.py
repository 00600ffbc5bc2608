"""The invariants that no constraint can hold, each one statement over one snapshot.

A move of a job is one statement too, so what a check finds is broken, not in motion.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from app.domain.findings import Finding
from app.store.database import Database

CHECKS = ("conservation", "leases", "orphans", "attempts", "budgets", "endings", "effects", "actions")
FINDINGS_MAX = 1_000
ALL = UUID(int=0)
"""The least id: an audit from it on reads the whole history."""


async def conservation(db: Database) -> list[Finding]:
    """Jobs that do not own exactly one home, and homes without a job. At most 1,000."""
    return await run_check(db, "conservation")


async def run_check(db: Database, check: str, since: UUID = ALL) -> list[Finding]:
    """At most 1,000 findings of one of `CHECKS` about jobs from `since` on, ordered by job. Raises `DatabaseAway`."""
    rows = await db.fetch(f"audit_{check}", FINDINGS_MAX, since)
    return [Finding(check, row["job_id"], row["detail"]) for row in rows]


async def run_checks(db: Database, since: UUID = ALL) -> list[Finding]:
    """The findings of all checks, in the order of `CHECKS`. Raises `DatabaseAway`."""
    return [finding for check in CHECKS for finding in await run_check(db, check, since)]


async def clock(db: Database) -> datetime:
    """The database's time, by which ids are minted. Raises `DatabaseAway`."""
    now: datetime = await db.fetchval("clock")
    return now


async def note(db: Database, found: Mapping[str, int]) -> None:
    """Keeps how many findings of each check the leader's last look had. Raises `DatabaseAway`."""
    await db.fetch("note_audits", list(found), list(found.values()))
