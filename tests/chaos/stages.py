"""Which runs go together: those that measure speed are alone on the machine, the others share it in lanes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from tests.chaos import points
from tests.chaos.measured.runner import RUNS
from tests.chaos.plan import Shape
from tests.chaos.runs import SHAPES

LONG = bool(os.environ.get("LONG"))
LANES = 2 if LONG else 3  # what takes longer also measures longer, and wants more of the machine
WORLD_SECONDS = 9.0  # to start a world and to end it
CLOSING_SECONDS = 5.0
MEASURED_SECONDS = 7.0


@dataclass(slots=True)
class Lane:
    """Runs one after the other; `seconds` is about how long."""

    names: list[str] = field(default_factory=list[str])
    seconds: float = 0.0


def stages(names: Sequence[str]) -> list[list[Lane]]:
    """One stage after the other, the lanes of each side by side. All runs when no names are given."""
    measured = [run for run in RUNS if not names or run.name in names]
    alone = [run.name for run in measured if run.alone]
    patient = [run.name for run in measured if not run.alone]
    at_points = [Lane([points.NAME], points.SECONDS)] if not names or points.NAME in names else []
    after = at_points if LONG else []  # worlds enough to keep a machine busy, for half an hour
    beside = [Lane(patient, WORLD_SECONDS + MEASURED_SECONDS * len(patient))] if patient else []
    groups = [
        *([] if LONG else at_points),
        *beside,
        *_groups([shape for shape in SHAPES if not names or shape.name in names]),
    ]
    return [stage for stage in ([Lane(alone)] if alone else [], _lanes(groups), after) if stage]


def _groups(shapes: Sequence[Shape]) -> list[Lane]:
    """Runs on one footing stay together, unless they are more than a lane's share of all."""
    share = sum(shape.seconds + CLOSING_SECONDS for shape in shapes) / LANES
    groups: list[Lane] = []
    for _, of_footing in groupby(sorted(shapes, key=lambda one: str(one.footing)), key=lambda one: one.footing):
        group = Lane(seconds=WORLD_SECONDS)
        groups.append(group)
        for shape in of_footing:
            if group.names and group.seconds + shape.seconds > share:
                group = Lane(seconds=WORLD_SECONDS)
                groups.append(group)
            group.names.append(shape.name)
            group.seconds += shape.seconds + CLOSING_SECONDS
    return groups


def _lanes(groups: Sequence[Lane]) -> list[Lane]:
    """The longest groups are placed first, each where least is."""
    lanes = [Lane() for _ in range(LANES)]
    for group in sorted(groups, key=lambda one: one.seconds, reverse=True):
        least = min(lanes, key=lambda lane: lane.seconds)
        least.names += group.names
        least.seconds += group.seconds
    return [lane for lane in lanes if lane.names]
