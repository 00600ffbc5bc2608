"""The runs, by the numbers of part N of the scenarios, at sizes that a laptop finishes in minutes."""

from __future__ import annotations

from tests.chaos.plan import Shape
from tests.chaos.records import Part

SLOWER = {Part.OK: 30, Part.FLAKY: 10, Part.SLOW: 45, Part.PERMANENT: 5, Part.EFFECT: 10}

SHAPES = (
    Shape(
        "N1",
        "workers killed",
        jobs=600,
        seconds=14,
        faults={"worker killed": 12, "worker and supervisor killed": 2, "relay killed": 1, "API killed": 1},
        wanted={"worker killed": 12, "worker and supervisor killed": 2, "rescued": 14},
        mix=SLOWER,
        settings={"worker_concurrency": 6},
    ),
)
