"""A job that kills its worker ends as a dead letter, and takes nobody with it."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from app.store.audit import conservation
from app.store.database import Database
from tests.client import journal_of
from tests.fundamentals.conftest import HANDLERS, Running
from tests.fundamentals.scale import scaled
from tests.processes import Process

NEIGHBOURS = scaled(6, 20)
CULPRITS = 4
PAUSE_SECONDS = 2.0  # after several short lives it is 5


async def test_a_job_that_kills_its_worker_is_dead_after_three_starts_and_its_neighbours_live(
    running: Running, db: Database, tmp_path: Path
) -> None:
    culprit_journal, journal = tmp_path / "culprit", tmp_path / "neighbours"
    running.worker()
    running.worker()
    await running.workers_entered(2)

    plan = {"journal": str(journal), "sleep_seconds": scaled(1, 5)}
    neighbours = running.client.submit_all("test.steps", [plan] * NEIGHBOURS)
    culprit = running.client.submit("test.die", {"journal": str(culprit_journal)})

    dead = running.client.wait_for(culprit, "dead", seconds=60)
    assert dead["reason"] == "crashes_exhausted"
    assert dead["crashes"] == 3
    assert [line[1] for line in journal_of(culprit_journal).lines("start")] == ["1", "2", "3"]
    for neighbour in neighbours:
        job = running.client.wait_for(neighbour, "done", seconds=90)
        assert job["crashes"] <= 2
    attempts = running.client.timeline(culprit)["attempts"]
    assert [attempt["end"] for attempt in attempts] == ["lost", "lost", "lost"]
    assert all("exited with code 137" in attempt["cause"] for attempt in attempts)
    assert await conservation(db) == []


async def test_jobs_that_kill_their_process_at_once_keep_no_slot_from_others(running: Running, tmp_path: Path) -> None:
    """The pause that is meant for a process which cannot live was made after each that a job had killed."""
    worker = running.stack.worker(HANDLERS, env={"OUTLAST_WORKER_CONCURRENCY": "1", "OUTLAST_SOLO_PROCESSES": "1"})
    await running.workers_entered(1)
    plan = {"journal": str(tmp_path / "culprits")}

    for culprit in running.client.submit_all("test.die", [plan] * CULPRITS):
        assert running.client.wait_for(culprit, "dead", seconds=120)["reason"] == "crashes_exhausted"

    gaps = sorted(seconds_without_process(worker))
    assert len(gaps) == 2 * CULPRITS, "the third start of each is in a process of its own"
    assert gaps[len(gaps) // 2] < PAUSE_SECONDS


def seconds_without_process(worker: Process) -> list[float]:
    """From each end of the process that runs jobs to the orders of the next one."""
    said = [json.loads(line) for line in worker.stderr.splitlines() if '"as_role": "worker"' in line]
    at = [(one["event"], datetime.fromisoformat(one["timestamp"])) for one in said]
    ends = [when for event, when in at if event == "child_ended"]
    orders = [when for event, when in at if event == "child_ordered"]
    return [(again - end).total_seconds() for end, again in zip(ends, orders[1:], strict=True)]
