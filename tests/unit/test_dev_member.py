"""A member of the dev stack: started again at once, then ever more slowly, and from none after it has settled."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import ROOT, is_running, wait_until
from workers.dev.failures import DevFailed
from workers.dev.layout import Layout
from workers.dev.member import PAUSE_MAX_SECONDS, SETTLED_SECONDS, Member, pause_seconds

PARENT = """
import signal, sys
from workers.dev.guard import spawn
child = spawn(["sleep", "60"], signal.SIGKILL, stdout=sys.stderr.buffer, stderr=sys.stderr.buffer)
print(child.pid, flush=True)
signal.pause()
"""


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    with layout.owned():
        pass
    return layout


def _ends_at_once() -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return process


def test_the_first_restart_is_at_once_and_later_ones_back_off_to_a_cap() -> None:
    assert [pause_seconds(deaths) for deaths in range(5)] == [0, 0, 0.1, 0.2, 0.4]
    assert pause_seconds(50) == PAUSE_MAX_SECONDS


def test_a_member_that_dies_is_launched_again_when_its_pause_is_over(layout: Layout) -> None:
    member = Member("api-1", _ends_at_once, layout)
    member.launch(now=0)
    first = member.pid
    assert member.tend(now=1)
    assert member.pid != first
    assert (layout.pids / "api-1.pid").read_text() == f"{member.pid}\n"
    assert not member.tend(now=2)
    assert member.due_at == pytest.approx(2.1)
    assert member.tend(now=2.1)
    assert member.deaths == 2


def test_a_member_that_lived_long_enough_starts_again_from_none(layout: Layout) -> None:
    member = Member("api-1", _ends_at_once, layout)
    member.launch(now=0)
    member.tend(now=1)
    member.tend(now=1 + SETTLED_SECONDS)
    assert member.deaths == 1


def test_a_living_member_is_left_alone(layout: Layout) -> None:
    member = Member("api-1", lambda: subprocess.Popen(["sleep", "60"]), layout)
    member.launch(now=0)
    assert not member.tend(now=100)
    member.kill()
    assert member.ended_with == -signal.SIGKILL


def test_a_folder_has_one_owner(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.dev.layout.OWNER_WAIT_SECONDS", 0)
    with layout.owned(), pytest.raises(DevFailed, match="another"), Layout(layout.root).owned():
        pass


def test_env_can_be_read_by_a_shell_and_by_its_owner_only(layout: Layout) -> None:
    layout.write_env({"OUTLAST_API_URL": "it's $HOME"})
    assert layout.env.stat().st_mode & 0o777 == 0o600
    words = ["sh", "-c", f'. {layout.env} && printf %s "$OUTLAST_API_URL"']
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "it's $HOME"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells children of their parent's end on Linux only")
def test_a_guarded_child_ends_with_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    wait_until(lambda: not is_running(pid), what="the end of the child")
