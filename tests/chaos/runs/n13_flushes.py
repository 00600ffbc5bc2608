"""N13: Redis emptied again and again, and every connection cut now and then."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plan import Shape
from tests.chaos.promises import Count, Promise
from tests.chaos.runs.loads import PATIENT, SLOWER

SHORT = Shape(
    "N13",
    "Redis flushed, links cut",
    jobs=500,
    seconds=9,
    faults={"Redis flushed": 4, "links cut": 2},
    wanted={"Redis flushed": 4},
    mix=SLOWER,
    settings=PATIENT,
    charges=False,
    promises=(Promise(Count.WAITING_STARTED, "Redis flushed", 2.0),),
)
LONG = replace(
    SHORT,
    jobs=2_500,
    seconds=45,
    faults={"Redis flushed": 20, "links cut": 10},
    wanted={"Redis flushed": 20},
)
