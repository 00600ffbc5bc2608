"""Jobs come in here: many in one statement, each with its outbox row and its idempotency key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.domain import jsontext
from app.domain.request import StoredRequest
from app.store.database import Database


class NewJob(NamedTuple):
    """A job to insert, nothing left open. `input` and `metadata` are JSON text.

    `key` is the digest of the idempotency key, `request` that of the request; both or neither.
    """

    tenant: str
    kind: str
    queue: str
    priority: int
    input: str
    metadata: str | None
    max_retries: int
    timeout_seconds: float
    run_at: datetime | None
    delay_seconds: float | None
    deadline: datetime | None
    key: UUID | None
    request: UUID | None


class Inserted(NamedTuple):
    """A job that is on record now; `deferred` when it is not due yet."""

    id: UUID
    created_at: datetime
    due_at: datetime
    deferred: bool


@dataclass(frozen=True, slots=True)
class KeyTaken:
    """The key belongs to this job, made by the request with this digest."""

    job_id: UUID
    request: UUID


async def insert(db: Database, jobs: Sequence[NewJob]) -> list[Inserted | None]:
    """Inserts the jobs in one transaction; None for a job whose key is taken.

    Raises `Unstorable` when one of them cannot be stored (then none is), and `DatabaseAway`.
    """
    rows = await db.write(
        "submit",
        [job.key for job in jobs],
        [job.request for job in jobs],
        [job.tenant for job in jobs],
        [job.kind for job in jobs],
        [job.queue for job in jobs],
        [job.priority for job in jobs],
        [job.input for job in jobs],
        [job.metadata for job in jobs],
        [job.max_retries for job in jobs],
        [job.timeout_seconds for job in jobs],
        [job.run_at for job in jobs],
        [job.delay_seconds for job in jobs],
        [job.deadline for job in jobs],
    )
    answers: list[Inserted | None] = [None] * len(jobs)
    for row in rows:
        answers[row["place"] - 1] = Inserted(row["id"], row["created_at"], row["due_at"], row["deferred"])
    return answers


async def keys_taken(db: Database, keys: Sequence[UUID]) -> dict[UUID, KeyTaken]:
    """Whose the keys with these digests are. Raises `DatabaseAway`."""
    rows = await db.fetch("keys_taken", sorted(keys))
    return {row["digest"]: KeyTaken(row["job_id"], row["request_digest"]) for row in rows}


async def stored_request(db: Database, job_id: UUID) -> StoredRequest | None:
    """What the job was given when it was submitted. Raises `DatabaseAway`."""
    row = await db.fetchrow("stored_request", job_id)
    if row is None:
        return None
    return StoredRequest(
        kind=row["kind"],
        input=jsontext.read(row["input"]),
        queue=row["queue"],
        priority=row["priority"],
        run_at=row["run_at"],
        deadline=row["deadline"],
        timeout_seconds=row["timeout_seconds"],
        max_retries=row["max_retries"],
        metadata=None if row["metadata"] is None else jsontext.read(row["metadata"]),
        created_at=row["created_at"],
    )
