"""What the demonstration shows: a live board on a terminal, plain lines in a pipe."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from examples.demo.caller import Document
from examples.demo.checks import Check

STATES = ("scheduled", "queued", "retrying", "leased", "running", "done", "dead", "cancelled")
TERMINAL = ("done", "dead", "cancelled")
COLOURS = {"retrying": "yellow", "running": "cyan", "done": "green", "dead": "red"}
ROWS_MAX = 8
PIPE_WIDTH = 160
LINE_SECONDS_MIN = 0.5


class Screen:
    """Says what happens, with the seconds since the start in front."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        if not self.console.is_terminal:
            self.console = Console(highlight=False, width=PIPE_WIDTH)
        self._began = time.monotonic()
        self._live: Live | None = None
        self._line = ""
        self._line_at = 0.0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def step(self, title: str) -> None:
        """The next part of the story."""
        self.console.print()
        if self.console.is_terminal:
            self.console.rule(Text(title, "bold"), align="left")
        else:
            self.console.print(Text(f"== {title}"))

    def say(self, text: str) -> None:
        self.console.print(Text(f"{self.seconds:6.1f} s  {text}"))

    def show(self, text: str) -> None:
        """Output of a command, as it is."""
        self.console.print(Text(text.rstrip("\n")))

    @contextmanager
    def board(self) -> Iterator[None]:
        """Inside, `jobs()` draws in place on a terminal."""
        if not self.console.is_terminal:
            yield
            return
        with Live(console=self.console, auto_refresh=False, transient=True) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def jobs(self, jobs: Mapping[str, Document]) -> None:
        """Where all jobs stand, by ticket id."""
        counts = Counter(str(job["state"]) for job in jobs.values())
        line = " · ".join(f"{state} {counts[state]}" for state in STATES if counts[state])
        if self._live is not None:
            self._live.update(Group(Text(f"{self.seconds:6.1f} s  {line}"), bar(counts), rows(jobs)), refresh=True)
        elif line != self._line and time.monotonic() - self._line_at > LINE_SECONDS_MIN:
            self._line, self._line_at = line, time.monotonic()
            self.say(line)

    def table(self, rows: Sequence[tuple[str, str]]) -> None:
        """Names and what they come to."""
        table = Table(show_header=False)
        table.add_column(style="bold")
        table.add_column(overflow="fold")
        for name, value in rows:
            table.add_row(name, Text(value))
        self.console.print(table)

    def checks(self, checks: Sequence[Check]) -> None:
        """One line each."""
        for check in checks:
            mark = Text("  held  ", "green") if check.held else Text(" BROKEN ", "bold white on red")
            self.console.print(mark + Text(f" {check.promise}") + Text(f"  ({check.seen})", "dim"))


def bar(counts: Counter[str]) -> Table:
    """How many jobs have ended, on a line of its own."""
    line = Table.grid(padding=(0, 0, 0, 8))
    ended = sum(counts[state] for state in TERMINAL)
    line.add_row("", ProgressBar(total=counts.total() or 1, completed=ended, width=60))
    return line


def rows(jobs: Mapping[str, Document]) -> Table:
    """The jobs that are at work or wait for another attempt."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 8))
    busy = [(ticket, job) for ticket, job in sorted(jobs.items()) if job["state"] not in (*TERMINAL, "queued")]
    for ticket, job in busy[:ROWS_MAX]:
        progress: Document = job["progress"] or {}
        table.add_row(
            ticket,
            Text(str(job["state"]), COLOURS.get(str(job["state"]), "")),
            f"attempt {job['attempt']}",
            str(progress.get("message") or ""),
        )
    if len(busy) > ROWS_MAX:
        table.add_row(f"and {len(busy) - ROWS_MAX} more")
    return table
