"""`outlast dev`: one command brings everything, keeps it alive, and takes it away again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dev_stack import DevStack
from tests.processes import ROOT, children, is_running

ROLES = ("postgres-1", "redis-1", "api-1", "relay-1", "worker-1", "worker-2")
NOBODY = 65534
TREE = ("app", "workers", "migrations", "tests", "outlast.py")


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevStack]:
    """One that lives through the tests which end none of it for good."""
    folder = tmp_path_factory.mktemp("dev")
    with DevStack.start(folder / "data", folder / "logs", workers=2) as stack:
        assert stack.url
        yield stack


def test_dev_says_ready_when_a_job_can_be_done(dev: DevStack) -> None:
    assert dev.finished(dev.submit("test.double", {"value": 21}))["result"] == {"value": 42}
    assert set(dev.pids) == set(ROLES)
    assert all(is_running(pid) for pid in dev.pids.values())
    assert set(dev.env) == {"OUTLAST_DATABASE_URL", "OUTLAST_REDIS_URL", "OUTLAST_API_URL"}
    assert dev.env["OUTLAST_API_URL"] == dev.url
    assert dev.process.stdout == f"ready {dev.url}\n"


def test_a_folder_has_one_dev(dev: DevStack, tmp_path: Path) -> None:
    with DevStack.start(dev.data, tmp_path / "second") as second:
        assert second.process.wait(60) == 1
        assert "another `outlast dev` is running" in second.process.stderr
    assert all(is_running(pid) for pid in dev.pids.values())
    assert dev.env["OUTLAST_API_URL"] == dev.url


def test_a_port_that_is_taken_is_said_at_once_and_nothing_is_started(dev: DevStack, tmp_path: Path) -> None:
    assert dev.url
    port = dev.url.rpartition(":")[2]
    argv = [sys.executable, "-m", "workers.main", "dev", "--port", port, "--data", str(tmp_path)]
    ended = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"port {port} is taken" in ended.stderr
    assert not (tmp_path / "postgres").exists()


def test_without_workers_the_kinds_of_the_handlers_can_be_submitted_all_the_same(tmp_path: Path) -> None:
    with DevStack.start(tmp_path / "data", tmp_path / "logs", workers=0) as alone:
        assert alone.url
        assert not [name for name in alone.pids if name.startswith("worker")]
        assert alone.submit("test.double", {"value": 1})


def test_dev_starts_again_whatever_dies(dev: DevStack) -> None:
    for name in ROLES:
        dev.kill(name)
        assert dev.finished(dev.submit("test.double", {"value": 1}))["result"] == {"value": 2}, name
    assert dev.process.alive()


def test_killing_dev_leaves_nothing_and_the_same_folder_carries_on(tmp_path: Path) -> None:
    with DevStack.start(tmp_path / "data", tmp_path / "logs") as dev:
        assert dev.url
        job_id = dev.submit("test.double", {"value": 4})
        env, processes = dev.env, [dev.process.pid, *children(dev.process.pid)]
        dev.process.kill()
        dev.wait_for_nothing_left(processes)
    # A shell that has read the folder's env still means the servers of the folder.
    with DevStack.start(tmp_path / "data", tmp_path / "again", env=env) as again:
        assert again.finished(job_id)["result"] == {"value": 8}
        assert {"postgres-1", "redis-1"} <= set(again.pids)
        assert again.env["OUTLAST_DATABASE_URL"] == env["OUTLAST_DATABASE_URL"]
        _stops_clean(again, signal.SIGINT)


def test_dev_uses_servers_that_are_named_by_url(database_url: str, redis_url: str, tmp_path: Path) -> None:
    env = {"OUTLAST_DATABASE_URL": database_url, "OUTLAST_REDIS_URL": redis_url}
    with DevStack.start(tmp_path / "data", tmp_path / "logs", env=env) as dev:
        assert dev.finished(dev.submit("test.double", {"value": 3}))["result"] == {"value": 6}
        assert set(dev.pids) == {"api-1", "relay-1", "worker-1"}
        assert dev.env["OUTLAST_DATABASE_URL"] == database_url


def test_dev_says_why_a_process_cannot_start(tmp_path: Path) -> None:
    with DevStack.start(tmp_path / "data", tmp_path / "logs", handlers=["tests.handlers.missing"]) as dev:
        assert dev.process.wait(90) == 1
        assert "tests.handlers.missing" in dev.process.stderr
        assert dev.process.stdout == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="every other test here runs as an ordinary user already")
def test_dev_works_for_an_ordinary_user() -> None:
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    python = _python_for(NOBODY, packages)
    if python is None:
        pytest.skip("no interpreter that another user may run")
    home = Path(tempfile.mkdtemp(prefix="outlast-user-"))
    try:
        _checkout(home)
        env = {"PYTHONPATH": packages, "HOME": str(home), "TMPDIR": str(home)}
        argv = [python, "-m", "workers.main"]
        stack = DevStack.start(home / "data", home / "logs", argv=argv, cwd=home, user=NOBODY, env=env)
        with stack as dev:
            assert dev.finished(dev.submit("test.double", {"value": 5}))["result"] == {"value": 10}
            assert {Path(f"/proc/{pid}").stat().st_uid for pid in dev.pids.values()} == {NOBODY}
            _stops_clean(dev, signal.SIGTERM)
    finally:
        shutil.rmtree(home)


def _stops_clean(dev: DevStack, number: signal.Signals) -> None:
    processes = children(dev.process.pid)
    dev.process.send(number)
    assert dev.process.wait() == 0
    assert not any(is_running(pid) for pid in processes)
    assert not dev.pids


def _checkout(home: Path) -> None:
    for name in TREE:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, home / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, home / name)
    for path in (home, *home.rglob("*")):
        os.chown(path, NOBODY, NOBODY)


def _python_for(user: int, packages: str) -> str | None:
    """An interpreter of our version that `user` may run with our packages."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        words = [candidate, "-c", "import asyncpg, pydantic_core, redis, uvloop"]
        environment = {"PYTHONPATH": packages}
        try:
            done = subprocess.run(
                words,
                user=user,
                group=user,
                extra_groups=[],
                cwd="/",
                env=environment,
                capture_output=True,
                check=False,
            )
        except OSError:
            continue
        if done.returncode == 0:
            return candidate
    return None
