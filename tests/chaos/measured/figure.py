"""A promise in figures, and what a run saw of it."""

from __future__ import annotations

import os
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from tests.chaos.measured.scene import Scene
from tests.chaos.records import Finding

LONG = bool(os.environ.get("LONG"))


@dataclass(frozen=True, slots=True)
class Figure:
    """What was seen of `what`, and the limit: the most it may be, or the least."""

    what: str
    seen: float
    limit: float
    unit: str = "s"
    at_least: bool = False

    @property
    def kept(self) -> bool:
        return self.seen >= self.limit if self.at_least else self.seen <= self.limit

    def __str__(self) -> str:
        bound = "at least" if self.at_least else "at most"
        return f"{self.what}: {self.seen:.3g} {self.unit} ({bound} {self.limit:.3g})"


@dataclass(slots=True)
class Sheet:
    """What a measured run brought: `faults` fired, `jobs` submitted, figures, and whatever must not be."""

    faults: int = 0
    jobs: int = 0
    figures: list[Figure] = field(default_factory=list[Figure])
    findings: list[Finding] = field(default_factory=list[Finding])

    def all_findings(self) -> Sequence[Finding]:
        broken = [Finding("promise", "", str(figure)) for figure in self.figures if not figure.kept]
        return [*self.findings, *broken]


@dataclass(frozen=True, slots=True)
class Measured:
    """A run by its number in part N of the scenarios.

    `only_long`: too long for a laptop's minutes. `alone`: what it measures has no room for a neighbour.
    """

    name: str
    title: str
    measure: Callable[[Scene, random.Random], Awaitable[Sheet]]
    only_long: bool = False
    alone: bool = True


def quantile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed. Raises `ValueError` when there is none."""
    if not values:
        raise ValueError("nothing was measured")
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
