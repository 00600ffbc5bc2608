"""Which runs go together: those that measure are alone on the machine, the others share it in two lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from tests.chaos import points
from tests.chaos.measured.runner import RUNS
from tests.chaos.plan import Shape
from tests.chaos.runs import SHAPES

LANES = 2
WORLD_SECONDS = 9.0  # to start a world and to end it
CLOSING_SECONDS = 3.0


@dataclass(slots=True)
class Lane:
    """Runs one after the other; `seconds` is about how long."""

    names: list[str] = field(default_factory=list[str])
    seconds: float = 0.0


def stages(names: Sequence[str]) -> list[list[Lane]]:
    """One stage after the other, the lanes of each side by side. All runs when no names are given."""
    alone = [run.name for run in RUNS if not names or run.name in names]
    lanes = _lanes([shape for shape in SHAPES if not names or shape.name in names])
    at_points = [Lane([points.NAME])] if not names or points.NAME in names else []
    return [stage for stage in ([Lane(alone)] if alone else [], at_points, lanes) if stage]


def _lanes(shapes: Sequence[Shape]) -> list[Lane]:
    """Runs on one footing stay together; the longest groups are placed first, each where least is."""
    lanes = [Lane() for _ in range(LANES)]
    ordered = sorted(shapes, key=lambda shape: str(shape.footing))
    groups = [list(group) for _, group in groupby(ordered, key=lambda shape: shape.footing)]
    for group in sorted(groups, key=_seconds, reverse=True):
        least = min(lanes, key=lambda lane: lane.seconds)
        least.names += [shape.name for shape in group]
        least.seconds += _seconds(group)
    return [lane for lane in lanes if lane.names]


def _seconds(group: Sequence[Shape]) -> float:
    return WORLD_SECONDS + sum(shape.seconds + CLOSING_SECONDS for shape in group)
