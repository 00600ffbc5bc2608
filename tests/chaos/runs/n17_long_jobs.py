"""N17: PostgreSQL restarted again and again under jobs that take longer than all of it."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plan import Shape
from tests.chaos.records import Part
from tests.chaos.runs.loads import PATIENT

SHORT = Shape(
    "N17j",
    "PostgreSQL restarted under long jobs",
    jobs=10,
    seconds=4,
    faults={"PostgreSQL restarted": 2},
    wanted={"PostgreSQL restarted": 2},
    mix={Part.SLOW: 100},
    slow_seconds=(6, 6),
    settings=PATIENT,
    charges=False,
    once=True,
)
LONG = replace(
    SHORT,
    jobs=50,
    seconds=30,
    faults={"PostgreSQL restarted": 5},
    wanted={"PostgreSQL restarted": 5},
    slow_seconds=(58, 58),
    settings={**PATIENT, "worker_concurrency": 50},
)
