"""The runs, by the numbers of part N of the scenarios, at sizes that a laptop finishes in minutes."""

from __future__ import annotations

from collections.abc import Mapping

from tests.chaos.plan import Shape
from tests.chaos.records import Part

# More of what holds a lease for a while, for faults that need somebody at work.
SLOWER: Mapping[Part, int] = {Part.OK: 30, Part.FLAKY: 10, Part.SLOW: 45, Part.PERMANENT: 5, Part.EFFECT: 10}
LONG: Mapping[Part, int] = {Part.SLOW: 80, Part.EFFECT: 20}

# A worker that loses its servers for a moment must not look dead.
PATIENT: Mapping[str, float] = {"suspect_seconds": 5, "lease_seconds": 7}

SHAPES = (
    Shape(
        "N1",
        "workers, a relay, the API killed",
        jobs=500,
        seconds=16,
        faults={"worker killed": 13, "worker and supervisor killed": 2, "relay killed": 1, "API killed": 1},
        wanted={"worker killed": 13, "worker and supervisor killed": 2, "rescued": 15},
        mix=SLOWER,
        settings={"worker_concurrency": 6},
        workers=3,
    ),
    Shape(
        "N3",
        "clients cut off after sending",
        jobs=500,
        seconds=10,
        faults={"request cut off": 60},
        wanted={"request cut off": 60, "cut": 60},
        charges=False,
    ),
    Shape(
        "N4",
        "answers to COMMIT and XADD swallowed",
        jobs=600,
        seconds=12,
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
    ),
    Shape(
        "N6",
        "workers frozen past their lease",
        jobs=300,
        seconds=15,
        faults={"worker frozen": 6},
        wanted={"worker frozen": 6, "late refused": 6},
        mix=LONG,
        slow_seconds=(0.3, 0.9),
        settings={"suspect_seconds": 1, "lease_seconds": 2, "worker_concurrency": 6},
    ),
    Shape(
        "N11",
        "cancels race claims, ends and rescues",
        jobs=320,
        seconds=10,
        faults={"worker killed": 2},
        wanted={"worker killed": 2, "cancelled": 60, "cancel refused": 60},
        mix={Part.OK: 50, Part.SLOW: 35, Part.FLAKY: 10, Part.EFFECT: 5},
        cancel_share=1.0,
    ),
    Shape(
        "N13",
        "Redis flushed, links cut",
        jobs=500,
        seconds=9,
        faults={"Redis flushed": 4, "links cut": 2},
        wanted={"Redis flushed": 4},
        mix=SLOWER,
        settings=PATIENT,
        charges=False,
    ),
    Shape(
        "N14",
        "Redis away for 10 s",
        jobs=500,
        seconds=14,
        faults={"Redis away": 1},
        wanted={"Redis away": 1},
        settings=PATIENT,
        charges=False,
    ),
    Shape(
        "N17",
        "PostgreSQL restarted, killed",
        jobs=400,
        seconds=12,
        faults={"PostgreSQL restarted": 3, "postmaster killed": 1},
        wanted={"PostgreSQL restarted": 3, "postmaster killed": 1},
        mix=SLOWER,
        settings=PATIENT,
        charges=False,
    ),
    Shape(
        "N18",
        "all sessions terminated, 10 times/s",
        jobs=400,
        seconds=10,
        faults={"sessions terminated": 100},
        wanted={"sessions terminated": 90},
        settings=PATIENT,
        charges=False,
    ),
    Shape(
        "N22",
        "rolling restarts",
        jobs=400,
        seconds=12,
        faults={"worker restarted": 4},
        wanted={"worker restarted": 4},
        mix=LONG,
        slow_seconds=(0.1, 1.0),
        settings={**PATIENT, "worker_concurrency": 10},
        charges=False,
    ),
    Shape(
        "N26",
        "the replay command killed",
        jobs=150,
        seconds=2,
        faults={"replay killed": 5},
        wanted={"replay killed": 5},
        mix={Part.PERMANENT: 100},
        charges=False,
    ),
)
