"""N23: each of the six connections cut, black, open one way only, slow."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.faults.links import HURTS, hurt_name
from tests.chaos.plan import Shape
from tests.chaos.runs.loads import PATIENT, SLOWER
from tests.chaos.world import Road

SOME = (
    hurt_name(Road.API_POSTGRES, "black"),
    hurt_name(Road.WORKER_POSTGRES, "one way"),
    hurt_name(Road.RELAY_REDIS, "slow"),
    hurt_name(Road.CLIENT_API, "cut"),
)
ALL = tuple(hurt_name(road, how) for road in Road for how in HURTS)

SHORT = Shape(
    "N23",
    "broken links",
    jobs=300,
    seconds=8,
    faults=dict.fromkeys(SOME, 1),
    wanted=dict.fromkeys(SOME, 1),
    mix=SLOWER,
    settings=PATIENT,
    charges=False,
    at_once=2,
    lasting_seconds=3,
)
LONG = replace(
    SHORT,
    jobs=2_500,
    seconds=80,
    faults=dict.fromkeys(ALL, 1),
    wanted=dict.fromkeys(ALL, 1),
    at_once=1,
)
