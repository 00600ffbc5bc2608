"""N1: SIGKILL to workers at work, with and without their supervisors, to relays and the API."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.plan import Shape
from tests.chaos.promises import Count, Promise
from tests.chaos.runs.loads import HASTY, SLOWER

SHORT = Shape(
    "N1",
    "workers, a relay, the API killed",
    jobs=500,
    seconds=20,
    faults={"worker killed": 13, "worker and supervisor killed": 2, "relay killed": 1, "API killed": 1},
    wanted={"worker killed": 13, "worker and supervisor killed": 2, "rescued": 15},
    mix=SLOWER,
    settings=HASTY,
    workers=3,
    promises=(Promise(Count.RUNS_AGAIN, "worker killed", 1.0, share=0.5),),
)
LONG = replace(
    SHORT,
    jobs=7_000,
    seconds=400,  # a supervisor that lost several children within 2 s of life waits ever longer, and is meant to
    faults={"worker killed": 180, "worker and supervisor killed": 20, "relay killed": 6, "API killed": 6},
    wanted={"worker killed": 180, "worker and supervisor killed": 20, "rescued": 200},
)
