"""N17: PostgreSQL restarted, and its postmaster killed."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plan import Shape
from tests.chaos.promises import Count, Promise
from tests.chaos.runs.loads import PATIENT, SLOWER

SHORT = Shape(
    "N17",
    "PostgreSQL restarted, killed",
    jobs=400,
    seconds=10,
    faults={"PostgreSQL restarted": 3, "postmaster killed": 1},
    wanted={"PostgreSQL restarted": 3, "postmaster killed": 1},
    mix=SLOWER,
    settings=PATIENT,
    charges=False,
    promises=(
        Promise(Count.FIRST_END, "PostgreSQL restarted", 1.0, share=0.5),
        Promise(Count.FIRST_END, "postmaster killed", 1.0, share=0.5),
    ),
)
LONG = replace(
    SHORT,
    jobs=2_000,
    seconds=60,
    faults={"PostgreSQL restarted": 15, "postmaster killed": 5},
    wanted={"PostgreSQL restarted": 15, "postmaster killed": 5},
)
