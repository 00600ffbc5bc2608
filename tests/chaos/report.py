"""The table of the runs: one row each, and under it what was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tests.chaos.checker import bites, longest_stall, recoveries
from tests.chaos.plan import Shape
from tests.chaos.records import Finding, History

COLUMNS = (
    ("run", 5),
    ("what happened", 34),
    ("faults", 7),
    ("jobs", 6),
    ("lost", 5),
    ("unexp", 6),
    ("dupl", 5),
    ("rescued", 8),
    ("refused", 8),
    ("rec p50", 8),
    ("rec p99", 8),
    ("stall", 7),
    ("took", 6),
    ("", 4),
)
FINDINGS_SHOWN = 20


def header() -> str:
    return _line([title for title, _ in COLUMNS])


def row(shape: Shape, history: History, findings: Sequence[Finding], took_seconds: float) -> str:
    """The run in figures: times in seconds, counts otherwise."""
    broken, seen, recovered = Counter(one.rule for one in findings), bites(history), recoveries(history)
    return _line(
        [
            shape.name,
            shape.title,
            str(len(history.faults)),
            str(len(history.jobs)),
            str(broken["lost"]),
            str(broken["unexpected"]),
            str(broken["duplicate"]),
            str(seen["rescued"]),
            str(seen["late refused"]),
            _quantile(recovered, 0.5),
            _quantile(recovered, 0.99),
            f"{longest_stall(history):.2f}",
            f"{took_seconds:.0f} s",
            "BAD" if findings else "ok",
        ]
    )


def details(findings: Sequence[Finding]) -> list[str]:
    """The findings, the first of them."""
    lines = [f"  {one.rule}: {one.job_id} {one.detail}" for one in findings[:FINDINGS_SHOWN]]
    more = len(findings) - FINDINGS_SHOWN
    return [*lines, f"  and {more} more"] if more > 0 else lines


def _quantile(values: Sequence[float], share: float) -> str:
    return f"{sorted(values)[min(len(values) - 1, int(share * len(values)))]:.2f}" if values else "-"


def _line(cells: Sequence[str]) -> str:
    pairs = list(zip(cells, COLUMNS, strict=True))
    left = [f"{cell:<{width}}" for cell, (_, width) in pairs[:2]]
    return " ".join([*left, *(f"{cell:>{width}}" for cell, (_, width) in pairs[2:])])
