"""Orders at failpoints: each obeyed once, by one process, and by nobody who was not told where they are."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from app import failpoints
from app.cli.exits import ExitCode
from app.domain.errors import FailpointRaised
from app.failpoints import Action, Point, arm, fired, order, pid_of, reach
from app.settings import Settings
from tests.processes import ROOT, command, wait_until

WALKER = """
import sys
from app.failpoints import Point, arm, reach
from app.settings import Settings

arm(Settings())
print("ready", flush=True)
sys.stdin.readline()
reach(Point.FINISH_COMMITTED)
print("passed", flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder this process obeys."""
    arm(Settings(failpoints=str(tmp_path)))
    yield tmp_path
    failpoints.disarm()


def walker(folder: Path) -> subprocess.Popen[str]:
    """A process that walks past `finish.committed` at the word."""
    environment = {**os.environ, "OUTLAST_FAILPOINTS": str(folder)}
    process = subprocess.Popen(
        [sys.executable, "-c", WALKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_an_order_is_obeyed_once(folder: Path) -> None:
    order(folder, Action.RAISE, Point.ACK_DONE)
    with pytest.raises(FailpointRaised, match=r"ack\.done"):
        reach(Point.ACK_DONE)
    reach(Point.ACK_DONE)

    [obeyed] = fired(folder, Point.ACK_DONE)
    assert pid_of(obeyed) == os.getpid()
    assert not (folder / Point.ACK_DONE).exists()


def test_an_order_for_one_key_leaves_the_others_alone(folder: Path) -> None:
    key = "charge/7 of 'Bob' [*]"
    order(folder, Action.RAISE, Point.EFFECT_CALLED, key)
    reach(Point.EFFECT_CALLED, "mail")
    reach(Point.EFFECT_INTENDED, key)
    with pytest.raises(FailpointRaised, match="charge/7"):
        reach(Point.EFFECT_CALLED, key)

    assert fired(folder, Point.EFFECT_CALLED) == []
    assert len(fired(folder, Point.EFFECT_CALLED, key)) == 1


def test_an_order_for_the_point_alone_is_for_every_key(folder: Path) -> None:
    order(folder, Action.RAISE, Point.EFFECT_CALLED)
    with pytest.raises(FailpointRaised):
        reach(Point.EFFECT_CALLED, "mail")


def test_one_order_is_one_hit_however_many_threads_get_there(folder: Path) -> None:
    hits: list[FailpointRaised] = []
    ready = threading.Barrier(8)

    def walk() -> None:
        ready.wait()
        try:
            reach(Point.CLAIM_COMMITTED)
        except FailpointRaised as error:
            hits.append(error)

    for _ in range(20):
        order(folder, Action.RAISE, Point.CLAIM_COMMITTED)
        threads = [threading.Thread(target=walk) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(hits) == 20
    assert len(fired(folder, Point.CLAIM_COMMITTED)) == 20


def test_what_nobody_can_read_as_an_order_is_an_error_and_no_silence(folder: Path) -> None:
    (folder / Point.ACK_DONE).write_text("explode")
    with pytest.raises(ValueError, match="explode"):
        reach(Point.ACK_DONE)


def test_an_order_written_by_a_shell_is_obeyed_when_it_is_whole(folder: Path) -> None:
    (folder / Point.ACK_DONE).touch()
    reach(Point.ACK_DONE)
    (folder / Point.ACK_DONE).write_text("raise\n")
    with pytest.raises(FailpointRaised):
        reach(Point.ACK_DONE)


def test_without_the_setting_orders_mean_nothing(tmp_path: Path) -> None:
    arm(Settings())
    order(tmp_path, Action.KILL, Point.ACK_DONE)
    reach(Point.ACK_DONE)
    assert (tmp_path / Point.ACK_DONE).exists()


def test_a_process_that_is_to_be_killed_runs_nothing_after_the_point_and_one_order_kills_one(tmp_path: Path) -> None:
    order(tmp_path, Action.KILL, Point.FINISH_COMMITTED)
    walkers = [walker(tmp_path), walker(tmp_path)]
    ends = [process.communicate("go\n", timeout=30)[0] for process in walkers]

    assert sorted(process.returncode for process in walkers) == [-signal.SIGKILL, 0]
    assert sorted(ends) == ["", "passed\n"]
    [obeyed] = fired(tmp_path, Point.FINISH_COMMITTED)
    assert [process.pid for process in walkers if process.returncode] == [pid_of(obeyed)]


def test_a_process_that_is_to_stop_stands_at_the_point_until_it_is_continued(tmp_path: Path) -> None:
    order(tmp_path, Action.STOP, Point.FINISH_COMMITTED)
    process = walker(tmp_path)
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    wait_until(lambda: state_of(process.pid) == "T", 30, what="the process to stand still")
    assert pid_of(fired(tmp_path, Point.FINISH_COMMITTED)[0]) == process.pid

    process.send_signal(signal.SIGCONT)
    assert process.communicate(timeout=30)[0] == "passed\n"


@pytest.mark.parametrize("folder_name", ["missing", "a file", "open to others"])
def test_a_folder_that_others_could_write_to_is_refused_at_the_start(tmp_path: Path, folder_name: str) -> None:
    (tmp_path / "a file").touch()
    (tmp_path / "open to others").mkdir()
    (tmp_path / "open to others").chmod(0o777)
    with pytest.raises(ValidationError, match="belongs to this user"):
        Settings(failpoints=str(tmp_path / folder_name))


def test_no_process_starts_with_a_folder_that_is_not_its_own(tmp_path: Path) -> None:
    environment = {**os.environ, "OUTLAST_FAILPOINTS": str(tmp_path / "missing")}
    run = subprocess.run(command("relay"), cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert run.returncode == ExitCode.USAGE
    assert "OUTLAST_FAILPOINTS: must be a folder that belongs to this user" in run.stderr


def test_the_check_up_warns_of_a_folder_that_is_obeyed(tmp_path: Path) -> None:
    database = "postgresql://127.0.0.1:1/nobody"
    settings = {"OUTLAST_FAILPOINTS": str(tmp_path), "OUTLAST_DATABASE_URL": database, "OUTLAST_TRANSPORT": "pg"}
    words = command("doctor", "-o", "jsonl")
    run = subprocess.run(words, cwd=ROOT, env={**os.environ, **settings}, capture_output=True, text=True, timeout=60)
    [told] = [line for line in map(json.loads, run.stdout.splitlines()) if line["check"] == "failpoints"]
    assert told["status"] == "warning"


def test_a_watcher_hears_its_own_context_and_no_other(folder: Path) -> None:
    heard: list[tuple[Point, str]] = []
    order(folder, Action.RAISE, Point.ACK_DONE)
    with failpoints.watched(lambda point, detail: heard.append((point, detail))):
        reach(Point.ACK_DONE, "x")
    assert heard == [(Point.ACK_DONE, "x")]
    with pytest.raises(FailpointRaised):
        reach(Point.ACK_DONE)
