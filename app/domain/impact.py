"""What running dead letters again would touch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Impact:
    """Dead letters of one kind and reason, with their effects.

    `reused` are on record and are read back, `repeated` may be called again, `unknown` nobody knows;
    `blocked` jobs have one of those and are not replayed.
    """

    kind: str
    reason: str
    jobs: int
    reused: int
    repeated: int
    unknown: int
    blocked: int


def merged(parts: Iterable[Impact]) -> list[Impact]:
    """One figure per kind and reason, in that order."""
    sums: dict[tuple[str, str], Impact] = {}
    for part in parts:
        key = (part.kind, part.reason)
        sums[key] = _added(sums[key], part) if key in sums else part
    return [sums[key] for key in sorted(sums)]


def _added(one: Impact, other: Impact) -> Impact:
    return Impact(
        one.kind,
        one.reason,
        one.jobs + other.jobs,
        one.reused + other.reused,
        one.repeated + other.repeated,
        one.unknown + other.unknown,
        one.blocked + other.blocked,
    )
