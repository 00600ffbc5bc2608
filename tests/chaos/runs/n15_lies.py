"""N15: Redis lies: entries three times over and shuffled, of strangers, of no sense, trimmed."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plan import Shape
from tests.chaos.runs.loads import PATIENT, SLOWER

SHORT = Shape(
    "N15",
    "Redis lies",
    jobs=350,
    seconds=8,
    faults={"Redis lied to": 6},
    wanted={"Redis lied to": 6},
    mix=SLOWER,
    settings=PATIENT,
    charges=False,
    refuses=False,
)
LONG = replace(SHORT, jobs=2_000, seconds=45, faults={"Redis lied to": 40}, wanted={"Redis lied to": 40})
