"""What of a broken record can be mended without guessing: each repair one guarded statement that also says who and why.

Every repair looks again at what it mends, behind a lock that lets one repair at a time through. All moves of a job are
one statement each, so what is whole or in motion is left alone, and so is whatever a worker holds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from app.domain.findings import Mended
from app.store.database import Database, sql

REPAIR_LOCK_CLASS = 7_238

MENDING = {
    "conservation": ("cancelled", "homeless", "spare_homes"),
    "orphans": ("orphans",),
    "leases": ("stray_lease",),
}


class _NotKept(Exception):
    """Rolls back what was only tried."""


@dataclass(frozen=True, slots=True)
class Repairs:
    """Repairs by one person for one reason. Without `keep`, each is tried and rolled back.

    Every method may raise `DatabaseAway`.
    """

    db: Database
    reason: str
    actor: str
    keep: bool = True

    async def mend(self, check: str, job_id: UUID) -> list[Mended]:
        """Mends what `check` finds about the job, in one transaction; nothing when that cannot be done safely."""
        done: list[Mended] = []
        with suppress(_NotKept):
            async with self.db.transaction() as connection:
                await connection.fetch(sql("lock_repairs"), REPAIR_LOCK_CLASS)
                for what in MENDING.get(check, ()):
                    rows = await connection.fetch(sql(f"mend_{what}"), job_id, self.reason, self.actor)
                    done += [Mended(check, job_id, row["done"]) for row in rows]
                if not self.keep:
                    raise _NotKept
        return done

    async def note(self, mended: Mended, act: Callable[[], Awaitable[object]]) -> None:
        """Puts on record what `act` does elsewhere; on record is only what did not fail."""
        with suppress(_NotKept):
            async with self.db.transaction() as connection:
                await connection.fetch(sql("note_repair"), mended.job_id, self.reason, self.actor, mended.done)
                if not self.keep:
                    raise _NotKept
                await act()
