"""The leader's own look at the invariants, at young jobs alone: it must not cost more the longer the history is."""

from __future__ import annotations

from datetime import timedelta

from app.domain.findings import Finding
from app.domain.instants import uuid_floor
from app.store import audit
from app.store.database import Database
from app.telemetry import log

YOUNG = timedelta(minutes=2)  # each job is looked at twice, by a look a minute
YOUNG_CHECKS = ("conservation", "attempts", "budgets", "endings", "effects")
LOGGED_MAX = 20


class Auditor:
    """Any number may run at once; the newest look stands."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def run_once(self) -> list[Finding]:
        """Looks at the jobs of the last two minutes and at every lease; what it finds is logged and gauged.

        Raises `DatabaseAway`.
        """
        since = uuid_floor(await audit.clock(self._db) - YOUNG)
        found = {check: await audit.run_check(self._db, check, since) for check in YOUNG_CHECKS}
        found["leases"] = await audit.run_check(self._db, "leases")
        await audit.note(self._db, {check: len(findings) for check, findings in found.items()})
        findings = [finding for some in found.values() for finding in some]
        for one in findings[:LOGGED_MAX]:
            log.error("invariant_broken", invariant=one.check, job=str(one.job_id), detail=one.detail)
        return findings
