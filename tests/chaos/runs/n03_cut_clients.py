"""N3: clients cut off after sending, who ask again with the same key."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plan import Shape
from tests.chaos.runs.loads import PATIENT

SHORT = Shape(
    "N3",
    "clients cut off after sending",
    jobs=500,
    seconds=8,
    faults={"request cut off": 60},
    wanted={"request cut off": 60, "cut": 60},
    settings=PATIENT,
    charges=False,
)
LONG = replace(
    SHORT,
    jobs=4_200,
    seconds=84,
    faults={"request cut off": 500},
    wanted={"request cut off": 500, "cut": 500},
)
