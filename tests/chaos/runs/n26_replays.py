"""N26: the replay command killed in its work and given again."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plan import Shape
from tests.chaos.records import Part
from tests.chaos.runs.loads import PATIENT

SHORT = Shape(
    "N26",
    "the replay command killed",
    jobs=150,
    seconds=2,
    faults={"replay killed": 5},
    wanted={"replay killed": 5},
    mix={Part.PERMANENT: 100},
    settings=PATIENT,
    charges=False,
)
LONG = replace(
    SHORT,
    jobs=1_500,
    seconds=20,
    faults={"replay killed": 50},
    wanted={"replay killed": 50},
)
