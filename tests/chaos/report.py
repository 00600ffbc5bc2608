"""The table of the runs: one row each, and under it the figures and what was found."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Self

from tests.chaos.checker import bites, longest_stall
from tests.chaos.measured.figure import Sheet
from tests.chaos.plan import Shape
from tests.chaos.promises import first_ends, quantile, runs_again
from tests.chaos.records import Finding, History

COLUMNS = (
    ("run", 6),
    ("what happened", 36),
    ("faults", 7),
    ("jobs", 7),
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
# What a busy machine alone can break. It is always shown; `STRICT=1` makes it count as found.
LIMIT = "promise"
STRICT = bool(os.environ.get("STRICT"))


@dataclass(frozen=True, slots=True)
class Row:
    """A run that has ended: the cells of its row, and the lines under it. `bad`: something was found."""

    cells: Sequence[str]
    lines: Sequence[str]
    bad: bool

    def dump(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Self:
        return cls(**json.loads(text))

    def text(self) -> str:
        return "\n".join([_line(self.cells), *self.lines])


def header() -> str:
    return _line([title for title, _ in COLUMNS])


def of_history(shape: Shape, history: History, findings: Sequence[Finding], took_seconds: float) -> Row:
    """The run in figures: times in seconds, counts otherwise. Recovery is that of jobs whose worker was taken away,
    and where none was, from the healing of each fault to the first job that ended.
    """
    broken, seen = Counter(one.rule for one in findings), bites(history)
    recovered = list(runs_again(history)) or list(first_ends(history))
    cells = [
        shape.name,
        shape.title,
        str(len(history.faults)),
        str(len(history.jobs)),
        str(broken["lost"]),
        str(broken["unexpected"]),
        str(broken["duplicate"]),
        str(seen["rescued"]),
        str(seen["late refused"]),
        f"{quantile(recovered, 0.5):.2f}" if recovered else "-",
        f"{quantile(recovered, 0.99):.2f}" if recovered else "-",
        f"{longest_stall(history):.2f}",
        *_verdict(findings, took_seconds),
    ]
    return Row(cells, details(findings), _counts(findings))


def of_sheet(name: str, title: str, sheet: Sheet, took_seconds: float) -> Row:
    """A measured run: its promises stand under it, kept or not."""
    findings = sheet.all_findings()
    lost = sum(one.rule == "lost" for one in findings)
    unexpected = sum(one.rule == "unexpected" for one in findings)
    cells = [name, title, str(sheet.faults), str(sheet.jobs), str(lost), str(unexpected), *["-"] * 6]
    cells += _verdict(findings, took_seconds)
    return Row(cells, [*(f"       {one}" for one in sheet.figures), *details(findings)], _counts(findings))


def of_failure(name: str, title: str, error: BaseException, took_seconds: float) -> Row:
    """A run that could not be carried out."""
    findings = [Finding("failed", "", f"{type(error).__name__}: {error}"[:2_000])]
    return Row([name, title, *["-"] * 10, *_verdict(findings, took_seconds)], details(findings), bad=True)


def details(findings: Sequence[Finding]) -> list[str]:
    """The findings, the first of them."""
    lines = [f"  {one.rule}: {one.job_id} {one.detail}" for one in findings[:FINDINGS_SHOWN]]
    more = len(findings) - FINDINGS_SHOWN
    return [*lines, f"  and {more} more"] if more > 0 else lines


def _counts(findings: Sequence[Finding]) -> bool:
    return any(STRICT or one.rule != LIMIT for one in findings)


def _verdict(findings: Sequence[Finding], took_seconds: float) -> list[str]:
    word = "BAD" if _counts(findings) else "slow" if findings else "ok"
    return [f"{took_seconds:.0f} s", word]


def _line(cells: Sequence[str]) -> str:
    pairs = list(zip(cells, COLUMNS, strict=True))
    left = [f"{cell:<{width}}" for cell, (_, width) in pairs[:2]]
    return " ".join([*left, *(f"{cell:>{width}}" for cell, (_, width) in pairs[2:])])
