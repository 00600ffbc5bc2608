"""N14: Redis dead for a while, and back empty."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plan import Shape
from tests.chaos.runs.loads import PATIENT

SHORT = Shape(
    "N14",
    "Redis away",
    jobs=500,
    seconds=14,
    faults={"Redis away": 1},
    wanted={"Redis away": 1},
    settings=PATIENT,
    charges=False,
    refuses=False,
)
LONG = replace(
    SHORT,
    jobs=1_200,
    seconds=34,
    lasting_seconds=30,
)
