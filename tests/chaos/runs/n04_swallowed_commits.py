"""N4: what was committed or published, and nobody was told."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plan import Shape
from tests.chaos.runs.loads import PATIENT, SLOWER

SHORT = Shape(
    "N4",
    "answers to COMMIT and XADD swallowed",
    jobs=600,
    seconds=9,
    faults={
        "API commit swallowed": 10,
        "worker commit swallowed": 14,
        "relay commit swallowed": 6,
        "XADD swallowed": 6,
    },
    wanted={"API commit swallowed": 10, "worker commit swallowed": 14, "relay commit swallowed": 6},
    mix=SLOWER,
    settings=PATIENT,
    charges=False,
)
LONG = replace(
    SHORT,
    jobs=5_500,
    seconds=110,
    faults={
        "API commit swallowed": 100,
        "worker commit swallowed": 140,
        "relay commit swallowed": 60,
        "XADD swallowed": 60,
    },
    wanted={"API commit swallowed": 100, "worker commit swallowed": 140, "relay commit swallowed": 60},
)
