"""Wall clocks of hosts may be wrong, each in its own way, and be set while everybody works."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.store.audit import run_checks
from app.store.database import Database
from tests.chaos.clocks import ShiftedClock, is_shifted
from tests.client import Client, journal_of
from tests.processes import Process, Stack, children, wait_until

HOUR = 3_600.0
SHIFTS = {"api": HOUR, "relay": HOUR, "ahead": 600.0, "behind": -600.0}
DELAY_SECONDS = 2.0
FAR_LESS_THAN_A_SHIFT_SECONDS = 60.0

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="the library that shifts clocks is compiled")


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def start_all(stack: Stack, clocks: dict[str, ShiftedClock]) -> dict[str, Process]:
    handlers = ["tests.handlers.steps"]
    processes = {
        "api": stack.api(env=clocks["api"].environment),
        "relay": stack.relay(env=clocks["relay"].environment),
        "ahead": stack.worker(handlers, env=clocks["ahead"].environment),
        "behind": stack.worker(handlers, env=clocks["behind"].environment),
    }
    for worker in (processes["ahead"], processes["behind"]):
        worker.wait_for_output("worker_entered", 60)
    return processes


async def test_with_every_clock_off_no_live_lease_is_taken_and_nothing_is_early_or_hours_late(
    stack: Stack, db: Database, tmp_path: Path
) -> None:
    """Leases and due times were written by one host's clock and judged by another's: stolen, early, or hours late."""
    clocks = {name: ShiftedClock(tmp_path, name, shift) for name, shift in SHIFTS.items()}
    processes = start_all(stack, clocks)
    for process in processes.values():
        assert all(is_shifted(pid) for pid in (process.pid, *children(process.pid)))
    client, journal = Client(stack.api_url), tmp_path / "journal"
    plan = {"journal": str(journal)}
    lease_seconds = stack.settings.lease_seconds

    now = datetime.now(UTC)
    due = now + timedelta(seconds=DELAY_SECONDS)
    long = client.submit_all("test.steps", [plan | {"sleep_seconds": 3 * lease_seconds}] * 4)
    soon = client.submit_all("test.steps", [plan] * 4, delay_seconds=DELAY_SECONDS)
    soon += client.submit_all("test.steps", [plan] * 4, run_at=due.isoformat())
    urgent = client.submit_all("test.steps", [plan] * 4, deadline=(now + timedelta(seconds=100)).isoformat())
    flaky = client.submit_all("test.flaky", [plan | {"fail_times": 2}] * 4)
    wait_until(lambda: journal_of(journal).count("start") >= len(long), what="the long jobs")
    clocks["ahead"].step_back(HOUR)

    jobs = {job_id: client.wait_for(job_id, "done", seconds=60) for job_id in (*long, *soon, *urgent, *flaky)}
    for job in jobs.values():
        assert_in_order(job)
        assert job["crashes"] == 0
        assert job["attempt"] == (3 if job["id"] in flaky else 1)
    assert journal_of(journal).count("start") == sum(job["attempt"] for job in jobs.values())
    for job_id in soon:
        late = (instant(jobs[job_id]["started_at"]) - due).total_seconds()
        assert 0 <= late <= FAR_LESS_THAN_A_SHIFT_SECONDS
    assert await run_checks(db) == []


def assert_in_order(job: dict[str, Any]) -> None:
    created, started, finished = (instant(job[name]) for name in ("created_at", "started_at", "finished_at"))
    assert created <= started <= finished
