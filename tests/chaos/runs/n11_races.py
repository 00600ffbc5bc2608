"""N11: cancels that race claims, ends and rescues."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plan import Shape
from tests.chaos.records import Part
from tests.chaos.runs.loads import HASTY

SHORT = Shape(
    "N11",
    "cancels race claims, ends, rescues",
    jobs=430,
    seconds=11,
    faults={"cancels race rescues": 10},
    wanted={"rescue races": 10, "rescued": 3, "cancelled": 40, "cancel refused": 5},
    mix={Part.OK: 40, Part.SLOW: 45, Part.FLAKY: 10, Part.EFFECT: 5},
    slow_seconds=(0.2, 0.6),
    settings=HASTY,
    workers=3,
    at_once=4,
    cancel_share=0.7,
    cancel_seconds=3.0,
)
LONG = replace(
    SHORT,
    jobs=2_900,
    seconds=88,
    faults={"cancels race rescues": 60},
    wanted={"rescue races": 60, "rescued": 20, "cancelled": 300, "cancel refused": 30},
)
