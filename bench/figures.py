"""What is measured: one figure a key, with the limit it is held to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

OUT = Path(__file__).parent / "out"


@dataclass(frozen=True, slots=True)
class Figure:
    """`key` names it in `latest.json`; `least` and `most` are what it is held to on a quiet machine with two cores."""

    key: str
    what: str
    value: float
    least: float | None = None
    most: float | None = None

    @property
    def holds(self) -> bool:
        return (self.least is None or self.value >= self.least) and (self.most is None or self.value <= self.most)

    @property
    def limit(self) -> str:
        """In words; empty without one."""
        if self.least is not None:
            return f"at least {self.least:,g}"
        return "" if self.most is None else f"at most {self.most:,g}"


def show(figures: Sequence[Figure]) -> None:
    """Prints the table."""
    table = Table(box=None, pad_edge=False)
    for title in ("key", "what", "measured", "limit", ""):
        table.add_column(title, justify="right" if title == "measured" else "left")
    for one in figures:
        verdict = "" if not one.limit else "ok" if one.holds else "off"
        measured = f"{one.value:,.4g}" if one.value < 1_000 else f"{one.value:,.0f}"
        table.add_row(one.key, one.what, measured, one.limit, verdict)
    Console(width=None if Console().is_terminal else 140).print(table)


def write(figures: Sequence[Figure]) -> Path:
    """Writes `latest.json`, one number a key; its path."""
    OUT.mkdir(exist_ok=True)
    path = OUT / "latest.json"
    path.write_text(json.dumps({one.key: one.value for one in figures}, indent=2) + "\n")
    return path
