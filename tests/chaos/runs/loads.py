"""What several runs load a world with, and under which clocks."""

from __future__ import annotations

from collections.abc import Mapping

from tests.chaos.records import Part

# More of what holds a lease for a while, for faults that need somebody at work.
SLOWER: Mapping[Part, int] = {Part.OK: 30, Part.FLAKY: 10, Part.SLOW: 45, Part.PERMANENT: 5, Part.EFFECT: 10}
SLOW: Mapping[Part, int] = {Part.SLOW: 80, Part.EFFECT: 20}

# Few slots, so that killed and frozen workers hold what others wait for; a short lease, so that it is soon taken.
HASTY: Mapping[str, float] = {"suspect_seconds": 1, "lease_seconds": 2, "worker_concurrency": 6}

# A worker that loses its servers for a moment must not look dead.
PATIENT: Mapping[str, float] = {"suspect_seconds": 5, "lease_seconds": 7}
