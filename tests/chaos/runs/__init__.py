"""The runs, by the numbers of the scenarios: sizes that a laptop finishes in minutes, and with `LONG=1` the whole."""

from __future__ import annotations

import os

from tests.chaos.plan import Shape
from tests.chaos.runs import (
    n01_kills,
    n03_cut_clients,
    n04_swallowed_commits,
    n06_freezes,
    n11_races,
    n13_flushes,
    n14_redis_away,
    n15_lies,
    n16_redis_states,
    n17_long_jobs,
    n17_postgres_restarts,
    n18_sessions,
    n22_rolling_restarts,
    n23_broken_links,
    n24_clocks,
    n26_replays,
)

SIZES: tuple[tuple[Shape, Shape], ...] = (
    (n01_kills.SHORT, n01_kills.LONG),
    (n03_cut_clients.SHORT, n03_cut_clients.LONG),
    (n04_swallowed_commits.SHORT, n04_swallowed_commits.LONG),
    (n06_freezes.SHORT, n06_freezes.LONG),
    (n11_races.SHORT, n11_races.LONG),
    (n13_flushes.SHORT, n13_flushes.LONG),
    (n14_redis_away.SHORT, n14_redis_away.LONG),
    (n15_lies.SHORT, n15_lies.LONG),
    (n16_redis_states.SHORT, n16_redis_states.LONG),
    (n17_postgres_restarts.SHORT, n17_postgres_restarts.LONG),
    (n17_long_jobs.SHORT, n17_long_jobs.LONG),
    (n18_sessions.SHORT, n18_sessions.LONG),
    (n22_rolling_restarts.SHORT, n22_rolling_restarts.LONG),
    (n23_broken_links.SHORT, n23_broken_links.LONG),
    (n24_clocks.SHORT, n24_clocks.LONG),
    (n26_replays.SHORT, n26_replays.LONG),
)

SHAPES: tuple[Shape, ...] = tuple(long if os.environ.get("LONG") else short for short, long in SIZES)
