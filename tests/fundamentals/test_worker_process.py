"""A worker's processes end when they are told to, or when nobody is left to tell them, whatever is away."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pydantic import SecretStr

from app.settings import Settings
from app.store.database import Database
from tests.client import Client, journal_of
from tests.fundamentals.conftest import HANDLERS, Running
from tests.processes import ROOT, Stack, children, is_running, wait_until
from workers.dev.embedded import free_port
from workers.exits import EXIT_FAILED, EXIT_RELEASED_LATE

ORPHANS_GONE_SECONDS = 8


def nowhere() -> Settings:
    return Settings(
        database_url=SecretStr(f"postgresql://nobody:secret@127.0.0.1:{free_port()}/nothing"), transport="pg"
    )


def test_children_of_a_killed_supervisor_end_though_the_database_never_answers(tmp_path: Path) -> None:
    with Stack(nowhere(), tmp_path) as stack:
        supervisor = stack.worker(HANDLERS)
        supervisor.wait_for_output("kinds_not_published_yet")
        orphans = children(supervisor.pid)
        assert orphans
        supervisor.kill()

        wait_until(lambda: not any(map(is_running, orphans)), ORPHANS_GONE_SECONDS, what="the end of the orphans")


def test_a_child_whose_supervisor_was_gone_before_it_could_look_ends_all_the_same(tmp_path: Path) -> None:
    with Stack(nowhere(), tmp_path) as stack:
        child = subprocess.Popen(
            [sys.executable, "-m", "workers.child", str(os.getppid())],
            cwd=ROOT,
            env=stack.environment({"OUTLAST_HANDLERS": ",".join(HANDLERS)}),
            stdin=subprocess.PIPE,
        )
        try:
            assert child.wait(30) == EXIT_RELEASED_LATE
        finally:
            child.kill()
            child.communicate()


async def test_a_supervisor_that_can_no_longer_watch_the_fleet_ends_instead_of_going_on_blind(
    stack: Stack, db: Database
) -> None:
    supervisor = stack.worker(HANDLERS, env={"OUTLAST_TRANSPORT": "pg"})
    supervisor.wait_for_output("worker_entered")
    async with db.session() as connection:
        await connection.execute("ALTER TABLE workers RENAME COLUMN settled_at TO calmed_at")

    assert supervisor.wait(30) == EXIT_FAILED


def test_a_worker_that_is_stopped_before_the_database_ever_answered_exits_cleanly(tmp_path: Path) -> None:
    with Stack(nowhere(), tmp_path) as stack:
        supervisor = stack.worker(HANDLERS)
        supervisor.wait_for_output("kinds_not_published_yet")

        assert supervisor.stop(20) == 0


def test_handlers_that_cannot_be_loaded_are_a_usage_error(tmp_path: Path) -> None:
    with Stack(nowhere(), tmp_path) as stack:
        worker = stack.worker(["tests.handlers.missing"])

        assert worker.wait(30) == 2
        assert "tests.handlers.missing" in worker.stderr


def test_a_worker_without_handlers_is_a_usage_error(tmp_path: Path) -> None:
    with Stack(nowhere(), tmp_path) as stack:
        worker = stack.worker([])

        assert worker.wait(30) == 2
        assert "--handlers" in worker.stderr


async def test_a_stopped_worker_lets_its_jobs_finish_and_charges_nothing(
    running: Running, db: Database, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    worker = running.worker()
    await running.workers_entered(1)
    job_id = running.client.submit("test.steps", {"journal": str(journal), "sleep_seconds": 2, "steps": ["one"]})
    wait_until(lambda: journal_of(journal).count("perform"), what="a running job")

    assert worker.stop(20) == 0

    job = running.client.job(job_id)
    assert (job["state"], job["attempt"], job["crashes"]) == ("done", 1, 0)


async def test_a_job_longer_than_the_grace_is_given_back_and_runs_elsewhere_at_once(
    running: Running, db: Database, tmp_path: Path
) -> None:
    client: Client = running.client
    journal = tmp_path / "journal"
    first = running.worker(env={"OUTLAST_SHUTDOWN_SECONDS": "0.5"})
    await running.workers_entered(1)
    job_id = client.submit("test.steps", {"journal": str(journal), "steps": ["one", "two"], "hold": ["two"]})
    wait_until(lambda: journal_of(journal).count("hold"), what="a running job")
    running.worker()
    await running.workers_entered(2)

    assert first.stop(20) == 0
    wait_until(lambda: journal_of(journal).count("start") == 2, what="a second start")
    Path(f"{journal}.two").touch()

    job = client.wait_for(job_id, "done")
    assert (job["attempt"], job["crashes"], job["retries"]["used"]) == (2, 0, 0)
    assert [attempt["end"] for attempt in client.timeline(job_id)["attempts"]] == ["released", "done"]
    assert [line[1] for line in journal_of(journal).lines("perform")] == ["one", "two"]
