"""N18: every database session terminated ten times a second."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plan import Shape
from tests.chaos.runs.loads import PATIENT

SHORT = Shape(
    "N18",
    "all sessions terminated, 10 times/s",
    jobs=400,
    seconds=10,
    faults={"sessions terminated": 100},
    wanted={"sessions terminated": 90},
    settings=PATIENT,
    charges=False,
)
LONG = replace(
    SHORT,
    jobs=2_400,
    seconds=60,
    faults={"sessions terminated": 600},
    wanted={"sessions terminated": 540},
)
