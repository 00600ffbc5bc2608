"""`make demo`, run as a person runs it: from nothing, to the end or cut off in the middle."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import ROOT, Process, is_running
from workers.dev.guard import spawn

LIMIT_SECONDS = 300


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Process]:
    out_path, err_path = tmp_path / "demo.out", tmp_path / "demo.err"
    with out_path.open("wb") as out, err_path.open("wb") as err:
        words = [sys.executable, "-m", "examples.demo"]
        env = os.environ | {"TMPDIR": str(tmp_path)}
        popen = spawn(words, signal.SIGTERM, cwd=ROOT, env=env, stdout=out, stderr=err)
    process = Process("demo", popen, out_path, err_path)
    yield process
    if process.alive():
        process.stop()


@pytest.mark.timeout(LIMIT_SECONDS + 30)
def test_the_demo_holds_everything_it_promises_in_under_five_minutes(demo: Process) -> None:
    assert demo.wait(LIMIT_SECONDS) == 0, demo.log_tail()
    assert "promises, 0 broken" in demo.stdout
    assert "BROKEN" not in demo.stdout
    for name, value in {"accepted": 50, "done": 48, "sink calls": 48, "duplicates": 0}.items():
        assert re.search(rf"│ {name} +│ {value} +│", demo.stdout), name


@pytest.mark.timeout(180)
def test_an_interrupted_demo_leaves_nothing_running(demo: Process) -> None:
    demo.wait_for_output("ready at", 120)
    pids = [int(pid) for pid in re.findall(r"(?:api|postgres|redis|relay|worker)-\d+ (\d+)", demo.stdout)]
    assert len(pids) >= 6
    demo.send(signal.SIGINT)
    assert demo.wait(60) == 130
    assert [pid for pid in pids if is_running(pid)] == []
