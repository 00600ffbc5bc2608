"""A first-priority job waits for about one slot, never for a backlog."""

from __future__ import annotations

import time
from pathlib import Path

from tests.client import journal_of
from tests.fundamentals.conftest import Running
from tests.fundamentals.scale import scaled
from tests.processes import wait_until


async def test_a_first_priority_job_overtakes_a_long_backlog(running: Running, tmp_path: Path) -> None:
    backlog, urgent = tmp_path / "backlog", tmp_path / "urgent"
    running.worker(env={"OUTLAST_WORKER_CONCURRENCY": "10"})
    await running.workers_entered(1)
    plan = {"journal": str(backlog), "sleep_seconds": 1}
    running.client.submit_all("test.steps", [plan] * scaled(1000, 5000), priority=5)
    wait_until(lambda: journal_of(backlog).count("start") >= 10, what="a full worker")

    submitted = time.monotonic()
    running.client.submit("test.steps", {"journal": str(urgent)}, priority=0)
    wait_until(lambda: journal_of(urgent).count("start"), seconds=10, what="the urgent job")

    waited = time.monotonic() - submitted
    ahead = journal_of(backlog).count("start")
    print(f"started {waited:.2f} s after the submit, behind {ahead} of the backlog")
    assert ahead <= 50, "it passed the backlog: at most a window of two slots each was ahead of it"


async def test_a_queue_without_workers_and_scheduled_jobs_delay_nothing(running: Running, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    running.worker()
    await running.workers_entered(1)
    plan = {"journal": str(journal)}
    running.client.submit_all("test.steps", [plan] * 1000, queue="deserted")
    running.client.submit_all("test.steps", [plan] * scaled(2000, 10_000), delay_seconds=3600, priority=0)

    job_id = running.client.submit("test.steps", plan)

    assert running.client.wait_for(job_id, "done", seconds=5)["attempt"] == 1
    assert journal_of(journal).count("start") == 1
