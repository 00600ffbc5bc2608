"""What an audit finds: a broken invariant, named after its check, with the job it concerns; and what mended it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

LEFT_ALONE = {
    "conservation": "let the attempt that holds it end, or end it with `outlast dead discard`; then repair again",
    "leases": "repair again: its worker was heard of meanwhile",
    "orphans": "repair again",
    "attempts": "attempts cannot be made up: see `outlast job timeline`, then cancel, replay or discard the job",
    "budgets": "charges cannot be made up: see `outlast job timeline`, then cancel, replay or discard the job",
    "endings": "an ending cannot be made up: replay or discard the job",
    "effects": "ask whoever received it what was done, before any replay",
    "actions": "what somebody did cannot be made up: the finding stays as the record of it",
    "broker": "a live worker holds it: end that worker, then repair again",
}
"""What a person can do about a finding that no repair may touch, by check."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`check` names the invariant, `detail` says in words what was found instead."""

    check: str
    job_id: UUID | None
    detail: str


@dataclass(frozen=True, slots=True)
class Mended:
    """What a repair did about a finding of `check`, in words."""

    check: str
    job_id: UUID | None
    done: str
