"""Every transition of a leased job, one method each; zero rows is always a legal answer.

All but the claims may be sent again after a lost reply: `(job_id, attempt)` is the fence.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

from app.domain.leased import LeasedJob
from app.domain.outcomes import Bury, Done, Failure, Release, Retry
from app.settings import Settings
from app.store.database import Database, Record

OutcomeT = TypeVar("OutcomeT", Done, Retry, Bury, Release)


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a claim brought. `fresh` is false when our own heartbeat was too old for any claim."""

    jobs: list[LeasedJob]
    fresh: bool


class Ended(NamedTuple, Generic[OutcomeT]):
    """An attempt of mine and how it ended."""

    job_id: UUID
    attempt: int
    outcome: OutcomeT


class Leases:
    """The leases of one worker process.

    Every method may raise `DatabaseAway`, the `..._if_leased` ones `Unstorable` too.
    """

    def __init__(self, db: Database, settings: Settings, worker_id: UUID, kinds: Sequence[str]) -> None:
        self._db = db
        self._settings = settings
        self._worker_id = worker_id
        self._kinds = list(kinds)

    async def claim(self, ids: Sequence[UUID], *, solo: bool = False) -> Claimed:
        """Leases those of `ids` that are due and of a kind I know. After a lost reply the heartbeat tells."""
        grace = self._settings.suspect_seconds
        return _claimed(
            await self._db.fetch("claim", sorted(set(ids)), self._worker_id, self._kinds, grace, grace, solo)
        )

    async def claim_due(self, queue: str, limit: int, *, kinds: Sequence[str], overdue_seconds: float = 0.0) -> Claimed:
        """Leases up to `limit` due jobs of a queue straight from the outbox, first priority first."""
        grace = self._settings.suspect_seconds
        rows = await self._db.fetch(
            "claim_due", queue, self._worker_id, list(kinds), grace, grace, limit, overdue_seconds
        )
        return _claimed(rows)

    async def finish_if_leased(self, ended: Sequence[Ended[Done]]) -> set[UUID]:
        """Writes results; the jobs that were still mine."""
        ended = _by_job(ended)
        rows = await self._db.write(
            "finish_if_leased", _ids(ended), _attempts(ended), [one.outcome.result for one in ended]
        )
        return _moved(rows)

    async def retry_if_leased(self, ended: Sequence[Ended[Retry]]) -> set[UUID]:
        """Puts jobs back into the outbox, deferred; the jobs that were still mine."""
        ended = _by_job(ended)
        rows = await self._db.write(
            "retry_if_leased",
            _ids(ended),
            _attempts(ended),
            [one.outcome.delay_seconds for one in ended],
            [one.outcome.end for one in ended],
            [_error(one.outcome.failure) for one in ended],
            [one.outcome.charged for one in ended],
            self._settings.max_crashes,
        )
        return _moved(rows)

    async def bury_if_leased(self, ended: Sequence[Ended[Bury]]) -> set[UUID]:
        """Makes dead letters; the jobs that were still mine."""
        ended = _by_job(ended)
        rows = await self._db.write(
            "bury_if_leased",
            _ids(ended),
            _attempts(ended),
            [one.outcome.reason for one in ended],
            [_error(one.outcome.failure) for one in ended],
            [one.outcome.failure.fingerprint for one in ended],
            [one.outcome.end for one in ended],
        )
        return _moved(rows)

    async def release_if_leased(self, ended: Sequence[Ended[Release]]) -> set[UUID]:
        """Gives jobs back, nothing charged; the jobs that were still mine."""
        ended = _by_job(ended)
        rows = await self._db.write(
            "release_if_leased",
            _ids(ended),
            _attempts(ended),
            [one.outcome.cause for one in ended],
            self._settings.max_releases,
            self._settings.max_crashes,
        )
        return _moved(rows)

    async def ended_by_attempt(self, attempts: Sequence[tuple[UUID, int]]) -> set[UUID]:
        """Those that a statement of mine has ended already: what a lost reply would have said."""
        attempts = sorted(attempts)
        return _moved(
            await self._db.fetch("ended_by_attempt", [job for job, _ in attempts], [attempt for _, attempt in attempts])
        )

    async def progress_if_leased(self, job_id: UUID, attempt: int, progress: str) -> None:
        """Shows progress (JSON text) while the attempt runs."""
        await self._db.fetch("progress_if_leased", job_id, attempt, progress)


def _by_job(ended: Sequence[Ended[OutcomeT]]) -> list[Ended[OutcomeT]]:
    return sorted(ended, key=lambda one: one.job_id)


def _ids(ended: Sequence[Ended[OutcomeT]]) -> list[UUID]:
    return [one.job_id for one in ended]


def _attempts(ended: Sequence[Ended[OutcomeT]]) -> list[int]:
    return [one.attempt for one in ended]


def _error(failure: Failure) -> str:
    return json.dumps(failure.document(), ensure_ascii=False)


def _moved(rows: Sequence[Record]) -> set[UUID]:
    return {row["job_id"] for row in rows}


def _claimed(rows: Sequence[Record]) -> Claimed:
    # The columns of both claims stand as the members of `LeasedJob` do; `fresh` is the last.
    return Claimed([LeasedJob(*row[:-1]) for row in rows if row[-1]], fresh=all(row[-1] for row in rows))
