"""The throughputs of one run as bars, for who would rather see them than read them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.bar import Bar
from rich.console import Console
from rich.table import Table

from bench.figures import OUT, Figure

WIDTH = 110
BAR_WIDTH = 50
OURS = "Outlast"

# As rich's own, but it fetches no font from anywhere.
FORMAT = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def write(figures: Sequence[Figure]) -> Path:
    """Writes `latest.svg`; its path."""
    of = {one.key: one.value for one in figures}
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(_bars("no-op jobs a second, submitted in bulk to the last outcome", _libraries(of)))
    console.print()
    console.print(_bars("ms of processor time a job, by process", _costs(of), digits=3))
    OUT.mkdir(exist_ok=True)
    path = OUT / "latest.svg"
    path.write_text(console.export_svg(title="Outlast", code_format=FORMAT), encoding="utf-8")
    return path


def _libraries(of: Mapping[str, float]) -> dict[str, float]:
    others = {key.removesuffix("_per_s"): of[key] for key in of if key.endswith("_per_s") and _is_library(key)}
    found = {OURS: of["end_to_end_per_s"], f"{OURS} without Redis": of["end_to_end_per_s"] * of["redis_off_ratio"]}
    return found | dict(sorted(others.items(), key=lambda one: -one[1]))


def _is_library(key: str) -> bool:
    return not key.startswith(("limit_", "end_to_end_", "posts_", "bare_", "batch_"))


def _costs(of: Mapping[str, float]) -> dict[str, float]:
    prefix = "cpu_ms_per_job_"
    return {key.removeprefix(prefix): of[key] for key in of if key.startswith(prefix) and of[key] >= 0.001}


def _bars(title: str, of: Mapping[str, float], digits: int = 0) -> Table:
    table = Table(box=None, title=title, title_justify="left", pad_edge=False, show_header=False)
    most = max(of.values(), default=1.0)
    for name, value in of.items():
        bar = Bar(most, 0, value, width=BAR_WIDTH, color="green" if name.startswith(OURS) else "blue")
        table.add_row(name, bar, f"{value:,.{digits}f}")
    return table
