"""What a caller has cancelled never starts again, from whatever state it was cancelled."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from app.store.audit import conservation
from app.store.database import Database
from tests.client import journal_of
from tests.fundamentals.conftest import Running
from tests.processes import wait_until


async def test_queued_retrying_and_running_jobs_stay_cancelled(running: Running, db: Database, tmp_path: Path) -> None:
    client, settings = running.client, running.stack.settings
    journals = {name: tmp_path / name for name in ("queued", "retrying", "running")}
    plans: dict[str, Any] = {name: {"journal": str(path)} for name, path in journals.items()}
    running.worker(env={"OUTLAST_BACKOFF_BASE_SECONDS": "1"})
    await running.workers_entered(1)
    jobs = {
        "queued": client.submit("test.steps", plans["queued"], delay_seconds=1),
        "retrying": client.submit("test.flaky", plans["retrying"] | {"fail_times": 5}, max_retries=5),
        "running": client.submit("test.steps", plans["running"] | {"steps": ["one"], "hold": ["one"]}),
    }
    wait_until(lambda: journal_of(journals["running"]).count("hold"), what="a running job")
    wait_until(lambda: client.job(jobs["retrying"])["state"] == "retrying", what="a retrying job")

    for job_id in jobs.values():
        assert client.cancel(job_id)["state"] == "cancelled"
    Path(f"{journals['running']}.one").touch()
    starts = {name: journal_of(path).count("start") for name, path in journals.items()}
    await asyncio.sleep(3 * settings.lease_seconds)  # the promise is that nothing happens for this long

    assert {name: journal_of(path).count("start") for name, path in journals.items()} == starts
    assert journal_of(journals["running"]).count("perform") == 0
    for job_id in jobs.values():
        job = client.job(job_id)
        assert (job["state"], job["result"]) == ("cancelled", None)
    assert await conservation(db) == []
