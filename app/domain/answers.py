"""What became of each job of an operation on many."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from app.domain.errors import Refused


@dataclass(frozen=True, slots=True)
class Answer:
    """`outcome` says what happened to the job; `refused` is set when nothing did."""

    job_id: UUID
    outcome: str
    refused: Refused | None = None


def refusal(job_id: UUID, refused: Refused) -> Answer:
    return Answer(job_id, refused.code, refused)
