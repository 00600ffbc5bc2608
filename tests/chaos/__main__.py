"""`make chaos`: every run, some alone and the others in lanes. `SEED=n` does the same again, `LONG=1` the whole.

`python -m tests.chaos [N1 N6 ...]` carries out these runs only. Logs are kept when anything was found, which is exit 1,
or with `KEEP=1`.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tests.chaos import report
from tests.chaos.report import Row
from tests.chaos.stages import Lane, stages
from tests.processes import ROOT
from workers.dev.guard import spawn

LINE_BYTES = 2**24
LONGEST_SECONDS = 7_200.0 if os.environ.get("LONG") else 300.0  # of one run; a lane that is silent for longer hangs


class Board:
    """Shows rows as runs end: plain lines in a pipe, and on a terminal how far the lanes are as well."""

    def __init__(self, runs: int) -> None:
        self.bad = 0
        self._done = 0
        self._runs = runs
        self._began = time.monotonic()
        console = Console(highlight=False, soft_wrap=True)
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._progress.add_task("starting")

    def __enter__(self) -> Board:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        self._progress.console.print(text, markup=False)

    def add(self, row: Row) -> None:
        self._done += 1
        self.bad += row.bad
        self.say(row.text())
        self._progress.update(self._task, description=f"{self._done} of {self._runs} runs ended, {self.bad} bad")

    def summary(self) -> str:
        seconds = time.monotonic() - self._began
        return f"{self._done - self.bad} of {self._runs} runs without a finding, {seconds:.0f} s"


async def ride(lane: Lane, seed: int, folder: Path, board: Board) -> None:
    """Starts the process of a lane and shows its rows. A lane that ends early leaves a row that says so."""
    words = ["-m", "tests.chaos.lane", str(seed), str(folder), *lane.names]
    log = folder.with_suffix(".err")
    reading, writing = os.pipe()
    with log.open("wb") as errors, os.fdopen(writing, "wb") as out:
        process = spawn([sys.executable, *words], signal.SIGKILL, cwd=ROOT, stdout=out, stderr=errors)
    reader = asyncio.StreamReader(limit=LINE_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb")
    )
    try:
        while line := await asyncio.wait_for(reader.readline(), LONGEST_SECONDS):
            board.add(Row.parse(line.decode()))
    except TimeoutError:
        process.kill()
    code = await asyncio.to_thread(process.wait)
    if code:
        ended = RuntimeError(f"the lane ended with {code}: {log.read_text(errors='replace')[-2_000:]}")
        board.add(report.of_failure("lane", " ".join(lane.names)[:36], ended, 0))


async def ride_all(names: Sequence[str], seed: int, folder: Path, board: Board) -> None:
    for number, lanes in enumerate(stages(names)):
        await asyncio.gather(
            *(
                ride(lane, seed, folder / f"lane-{number}{letter}", board)
                for lane, letter in zip(lanes, "abc", strict=False)
            )
        )


def main(names: Sequence[str]) -> int:
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1_000_000))
    runs = sum(len(lane.names) for lanes in stages(names) for lane in lanes)
    folder = Path(tempfile.mkdtemp(prefix="outlast-chaos-"))
    long = " LONG=1" if os.environ.get("LONG") else ""
    with Board(runs) as board:
        board.say(f"seed {seed}: `SEED={seed}{long} python -m tests.chaos` does the same again; logs in {folder}")
        board.say(report.header())
        asyncio.run(ride_all(names, seed, folder, board))
        board.say(board.summary())
    if not board.bad and not os.environ.get("KEEP"):
        shutil.rmtree(folder)
    return 1 if board.bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
