"""The help desk of the examples as a real process, for tests."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.processes import ROOT, wait_until
from workers.dev.guard import spawn


@contextmanager
def help_desk(folder: Path) -> Iterator[str]:
    """Its URL, for as long as the block runs."""
    output = folder / "desk.out"
    with output.open("wb") as out, (folder / "desk.log").open("wb") as log:
        desk = spawn(
            [sys.executable, "-m", "examples.sink", "--port", "0"], signal.SIGKILL, cwd=ROOT, stdout=out, stderr=log
        )
    try:
        wait_until(lambda: output.read_text().endswith("\n"), what="the help desk")
        yield output.read_text().removeprefix("ready ").strip()
    finally:
        desk.kill()
        desk.wait(10)
