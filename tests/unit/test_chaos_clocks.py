"""The shifted clock of chaos runs: wrong for the process it is given to, steppable, and known to the process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.chaos.clocks import ShiftedClock, has_compiler, is_shifted, true_time
from tests.processes import ROOT

ROUNDED = 0.001  # seconds; sums of floats differ in the last digit
HOUR = 3_600.0
LOOK = """
import sys, time
from datetime import UTC, datetime
from tests.chaos.clocks import true_time
while sys.stdin.readline():
    print(time.time(), datetime.now(UTC).timestamp(), *true_time(), time.monotonic(), flush=True)
"""


class Looking:
    """A process under a shifted clock that says what time it is when it is asked."""

    def __init__(self, clock: ShiftedClock) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-c", LOOK],
            cwd=ROOT,
            env={**os.environ, **clock.environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self) -> list[float]:
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        self.popen.stdin.write("\n")
        self.popen.stdin.flush()
        return [float(word) for word in self.popen.stdout.readline().split()]

    def end(self) -> None:
        self.popen.communicate()


@pytest.mark.skipif(not has_compiler(), reason="a shifted clock takes a C compiler")
def test_a_process_under_a_shifted_clock_is_off_by_so_much_until_it_is_set_back(tmp_path: Path) -> None:
    clock = ShiftedClock(tmp_path, "worker", HOUR)
    looking = Looking(clock)
    try:
        for shift in (HOUR, -HOUR):
            before, steady = time.time(), time.monotonic()
            wall, today, true, told, monotonic = looking.ask()
            after = time.time()
            assert before - ROUNDED <= wall - shift <= today - shift + ROUNDED <= after + 2 * ROUNDED
            assert before - ROUNDED <= true <= after + ROUNDED
            assert told == shift
            assert steady <= monotonic <= steady + after - before + 1
            clock.step_back(2 * HOUR)
        assert is_shifted(looking.popen.pid)
    finally:
        looking.end()


def test_a_process_of_its_own_clock_is_not_shifted() -> None:
    assert not is_shifted(os.getpid())
    at, shift = true_time()
    assert shift == 0
    assert at == pytest.approx(time.time(), abs=5)
