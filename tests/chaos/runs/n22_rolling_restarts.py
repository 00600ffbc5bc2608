"""N22: a deploy after a deploy."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plan import Shape
from tests.chaos.runs.loads import PATIENT, SLOW

SHORT = Shape(
    "N22",
    "rolling restarts",
    jobs=400,
    seconds=12,
    faults={"worker restarted": 4},
    wanted={"worker restarted": 4},
    mix=SLOW,
    slow_seconds=(0.1, 1.0),
    settings=PATIENT,
    charges=False,
)
LONG = replace(
    SHORT,
    jobs=4_500,
    seconds=140,
    faults={"worker restarted": 50},
    wanted={"worker restarted": 50},
)
