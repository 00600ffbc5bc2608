"""A job outlasts its worker: killed in the middle, it goes on where its record ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from app.store.audit import conservation
from app.store.database import Database
from tests.client import journal_of
from tests.fundamentals.conftest import Running
from tests.processes import Process, children, is_running, wait_until


async def test_a_job_whose_worker_process_is_killed_goes_on_without_repeating_its_recorded_effects(
    running: Running, db: Database, tmp_path: Path
) -> None:
    running.worker()
    running.worker()
    await running.workers_entered(2)
    journal = tmp_path / "journal"
    plan = {"journal": str(journal), "steps": ["one", "two", "three"], "hold": ["three"]}
    job_id = running.client.submit("test.steps", plan)
    wait_until(lambda: journal_of(journal).count("hold"), what="the third step")

    pid = running.client.timeline(job_id)["attempts"][0]["worker"]["pid"]
    os.kill(pid, signal.SIGKILL)
    Path(f"{journal}.three").touch()
    job = running.client.wait_for(job_id, "done")

    assert job["attempt"] == 2
    assert job["crashes"] == 1
    assert job["result"]["attempt"] == 2
    assert job["result"]["steps"][:2] == [pid, pid], "the first two results come from the killed attempt's record"
    performed = [line[1] for line in journal_of(journal).lines("perform")]
    assert performed == ["one", "two", "three"]
    first, second = running.client.timeline(job_id)["attempts"]
    assert (first["end"], second["end"]) == ("lost", "done")
    assert "killed by signal 9" in first["cause"]
    assert await conservation(db) == []


async def held_by_the_first_of_two_workers(running: Running, journal: Path, steps: list[str]) -> tuple[Process, str]:
    """A job that waits before its last step, the worker that holds it, and another one beside it."""
    holder = running.worker()
    await running.workers_entered(1)
    job_id = running.client.submit("test.steps", {"journal": str(journal), "steps": steps, "hold": steps[-1:]})
    wait_until(lambda: journal_of(journal).count("hold"), what="the last step")
    running.worker()
    await running.workers_entered(2)
    return holder, job_id


async def test_a_supervisor_killed_with_its_child_does_not_keep_the_job(
    running: Running, db: Database, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    doomed, job_id = await held_by_the_first_of_two_workers(running, journal, ["one"])

    both = [doomed.pid, *children(doomed.pid)]
    for pid in both:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: journal_of(journal).count("start") == 2, seconds=10, what="a second start")
    Path(f"{journal}.one").touch()

    assert running.client.wait_for(job_id, "done")["attempt"] == 2
    assert "fell silent" in running.client.timeline(job_id)["attempts"][0]["cause"]
    assert not any(is_running(pid) for pid in both)
    assert await conservation(db) == []


async def test_a_frozen_worker_loses_the_job_and_changes_nothing_when_it_thaws(
    running: Running, db: Database, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    frozen, job_id = await held_by_the_first_of_two_workers(running, journal, ["one", "two"])

    pids = [frozen.pid, *children(frozen.pid)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: journal_of(journal).count("start") == 2, seconds=10, what="a second start")
    Path(f"{journal}.two").touch()
    done = running.client.wait_for(job_id, "done")
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: "fenced" in frozen.stderr, seconds=10, what="the thawed worker to notice")

    assert running.client.job(job_id) == done
    assert done["result"]["attempt"] == 2
    assert [line[1] for line in journal_of(journal).lines("perform")] == ["one", "two"]
    assert await conservation(db) == []
