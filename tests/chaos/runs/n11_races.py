"""N11: cancels that race claims, ends and rescues."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plan import Shape
from tests.chaos.records import Part

SHORT = Shape(
    "N11",
    "cancels race claims, ends and rescues",
    jobs=320,
    seconds=10,
    faults={"worker killed": 2},
    wanted={"worker killed": 2, "cancelled": 60, "cancel refused": 60},
    mix={Part.OK: 50, Part.SLOW: 35, Part.FLAKY: 10, Part.EFFECT: 5},
    cancel_share=1.0,
)
LONG = replace(
    SHORT,
    jobs=2_000,
    seconds=60,
    faults={"worker killed": 12},
    wanted={"worker killed": 12, "cancelled": 400, "cancel refused": 400},
)
