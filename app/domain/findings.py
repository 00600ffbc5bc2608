"""What an audit finds: a broken invariant, named after its check, with the job it concerns."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Finding:
    """`check` names the invariant, `detail` says in words what was found instead."""

    check: str
    job_id: UUID | None
    detail: str
