"""What a list may be narrowed by. Two lists with equal filters are the same list."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from app.domain.states import Reason, State


@dataclass(frozen=True, slots=True)
class JobFilter:
    """`since` (inclusive) and `until` (exclusive) are about when a job was submitted."""

    state: State | None = None
    kind: str | None = None
    queue: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class DeadFilter:
    """`since` (inclusive) and `until` (exclusive) are about when a job died."""

    kind: str | None = None
    reason: Reason | None = None
    queue: str | None = None
    fingerprint: str | None = None
    since: datetime | None = None
    until: datetime | None = None
