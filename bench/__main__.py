"""`make bench`: all figures in one table, and in `bench/out/latest.json`. Exit 1 when one could not be measured.

`FULL=1` measures with the loads that the limits are meant for, and three times where `make bench` measures once.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from rich.console import Console
from rich.progress import Progress

from bench import beside, chart, end_to_end, growth, latency, limits, posts
from bench.figures import Figure, show, write

KEYS = (
    *("end_to_end_per_s", "vs_pgqueuer", "vs_best_redis_peer", "redis_off_ratio", "post_vs_bare_fastapi"),
    *("batch_jobs_per_s", "pickup_p50_ms", "pickup_p99_ms", "submit_p50_ms", "sql_per_job", "redis_per_job"),
    *("wal_bytes_per_job", "cpu_ms_per_job", "finished_1m_ratio", "waiting_1m_ratio", "held_xmin_ratio"),
    "three_effects_ratio",
)


SECTIONS = 6


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured: jobs a round, rounds of each, seconds of steady load, and what growth is measured at."""

    jobs: int
    peer_jobs: int
    rounds: int
    seconds: float
    growth: growth.Scale


QUICK = Sizes(jobs=20_000, peer_jobs=5_000, rounds=1, seconds=10, growth=growth.Scale(100_000, held_seconds=15))
FULL = Sizes(jobs=40_000, peer_jobs=10_000, rounds=3, seconds=60, growth=growth.Scale(1_000_000, held_seconds=180))


class Run:
    """The figures of one run, section by section; a section that fails leaves its keys out."""

    def __init__(self, progress: Progress) -> None:
        self.figures: list[Figure] = []
        self.failed = False
        self._progress = progress
        self._bar = progress.add_task("bench", total=SECTIONS)

    def section(self, title: str, measure: Callable[[], Coroutine[None, None, list[Figure]]]) -> None:
        """Measures, and says how long it took or why there is nothing."""
        began = time.monotonic()
        self._progress.update(self._bar, description=title)
        try:
            self.figures += asyncio.run(measure())
        except Exception as error:
            self.failed = True
            print(f"{title}: {type(error).__name__}: {error}", file=sys.stderr)
        else:
            print(f"{title}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        self._progress.advance(self._bar)

    def of(self, key: str) -> float:
        """A figure that was measured before. Raises `LookupError` when it could not be."""
        found = {one.key: one.value for one in self.figures}
        return found[key]


def main() -> int:
    sizes = FULL if os.environ.get("FULL") else QUICK
    with Progress(disable=not sys.stderr.isatty(), transient=True, console=Console(stderr=True)) as progress:
        run = Run(progress)
        run.section("end to end", lambda: end_to_end.measure(sizes.jobs, sizes.rounds))
        run.section("other libraries", lambda: beside.measure(sizes.jobs, sizes.peer_jobs, sizes.rounds))
        run.section("limits", lambda: limits.measure(run.of("end_to_end_per_s")))
        run.section("latency", lambda: latency.measure(sizes.seconds))
        run.section("single submits", lambda: posts.measure(sizes.seconds / 3, sizes.jobs, sizes.rounds))
        run.section("growth", lambda: growth.measure(sizes.growth))
    show(run.figures)
    print(f"written to {write(run.figures)}")
    missing = sorted(set(KEYS) - {one.key for one in run.figures})
    if not missing:
        print(f"drawn in {chart.write(run.figures)}")
    if missing:
        print(f"not measured: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing or run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
