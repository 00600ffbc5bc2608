"""A job in the hands of the worker that holds its lease."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID


class LeasedJob(NamedTuple):
    """What a claim hands over. `input` is JSON text; `(id, attempt)` is the fence of every write.

    `run_seconds` is what this attempt may take: the time-out, cut by the deadline.
    `deadline_binds` says which of the two it is.
    """

    id: UUID
    attempt: int
    tenant: str
    kind: str
    queue: str
    input: str
    run_seconds: float
    deadline_binds: bool
    retries: int
    max_retries: int
    crashes: int
    releases: int
    deadline: datetime | None = None
