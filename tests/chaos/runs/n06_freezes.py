"""N6: workers frozen until somebody else has ended their job, and thawed."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plan import Shape
from tests.chaos.promises import Count, Promise
from tests.chaos.runs.loads import HASTY, SLOW

SHORT = Shape(
    "N6",
    "workers frozen past their lease",
    jobs=300,
    seconds=12,
    faults={"worker frozen": 6},
    wanted={"worker frozen": 6, "late refused": 6},
    mix=SLOW,
    slow_seconds=(0.3, 0.9),
    settings=HASTY,
    workers=3,
    at_once=2,
    promises=(Promise(Count.RUNS_AGAIN, "worker frozen", 6.0, share=0.5),),
)
LONG = replace(
    SHORT,
    jobs=3_600,
    seconds=180,
    faults={"worker frozen": 100},
    wanted={"worker frozen": 100, "late refused": 100},
    workers=5,
    at_once=3,
)
