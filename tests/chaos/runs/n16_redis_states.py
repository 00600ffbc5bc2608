"""N16: Redis full, read-only and frozen, and a failover to a stale replica and back."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plan import Shape
from tests.chaos.runs.loads import PATIENT, SLOWER

EACH = ("Redis full", "Redis read-only", "Redis frozen", "Redis failed over")

SHORT = Shape(
    "N16",
    "Redis full, read-only, frozen, stale",
    jobs=350,
    seconds=13,
    faults=dict.fromkeys(EACH, 1),
    wanted=dict.fromkeys(EACH, 1),
    mix=SLOWER,
    settings=PATIENT,
    charges=False,
    refuses=False,
    lasting_seconds=2,
)
LONG = replace(
    SHORT,
    jobs=3_000,
    seconds=130,
    faults=dict.fromkeys(EACH, 2),
    wanted=dict.fromkeys(EACH, 2),
    lasting_seconds=10,
)
