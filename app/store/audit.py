"""The invariants that no constraint can hold, each one statement over one snapshot.

A move of a job is one statement too, so what a check finds is broken, not in motion.
"""

from __future__ import annotations

from app.domain.findings import Finding
from app.store.database import Database

CHECKS = ("conservation", "leases", "orphans", "attempts", "budgets", "endings")
FINDINGS_MAX = 1_000


async def conservation(db: Database) -> list[Finding]:
    """Jobs that do not own exactly one home, and homes without a job. At most 1,000."""
    return await run_check(db, "conservation")


async def run_check(db: Database, check: str) -> list[Finding]:
    """At most 1,000 findings of one of `CHECKS`, ordered by job. Raises `DatabaseAway`."""
    rows = await db.fetch(f"audit_{check}", FINDINGS_MAX)
    return [Finding(check, row["job_id"], row["detail"]) for row in rows]


async def run_checks(db: Database) -> list[Finding]:
    """The findings of all checks, in the order of `CHECKS`. Raises `DatabaseAway`."""
    return [finding for check in CHECKS for finding in await run_check(db, check)]
