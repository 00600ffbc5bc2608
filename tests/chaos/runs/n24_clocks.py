"""N24: wall clocks an hour off, and set back while everybody works."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plan import Shape
from tests.chaos.runs.loads import SLOWER

HOUR = 3_600.0

SHORT = Shape(
    "N24",
    "clocks an hour off, and set back",
    jobs=250,
    seconds=8,
    faults={"clocks stepped back": 1},
    wanted={"clocks stepped back": 1, "clocks seen": 2},
    mix=SLOWER,
    clocks={"worker": HOUR, "relay": HOUR, "api": -HOUR},
    charges=False,
    refuses=False,
)
LONG = replace(
    SHORT,
    jobs=1_800,
    seconds=60,
    faults={"clocks stepped back": 5},
    wanted={"clocks stepped back": 5, "clocks seen": 6},
)
