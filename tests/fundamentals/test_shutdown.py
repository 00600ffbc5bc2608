"""A worker that is told to stop finishes what it runs, gives back what it cannot finish, and charges nobody."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from app.store.audit import conservation
from app.store.database import Database
from app.store.fleet import Fleet
from tests.client import Client, journal_of
from tests.fundamentals.conftest import HANDLERS, Running
from tests.fundamentals.scale import scaled
from tests.processes import Process, Stack, children, is_running, wait_until

HELD = 4
ROLLOUTS = scaled(3, 5)


@pytest.fixture
def transport() -> str:
    """The broker's way; `test_worker_process.py` goes both."""
    return "redis"


async def draining(db: Database, grace_seconds: float, seconds: float = 15) -> UUID:
    """The worker that drains, once it says so."""
    async with asyncio.timeout(seconds):
        while True:
            for one in await Fleet(db).live(grace_seconds):
                if one.draining:
                    return one.id
            await asyncio.sleep(0.02)


def hold(client: Client, journal: Path, **fields: Any) -> str:
    """A job that performs its last effect when the test lets it."""
    job_id = client.submit("test.steps", {"journal": str(journal), "steps": ["end"], "hold": ["end"]}, **fields)
    wait_until(lambda: any(line[0] == job_id for line in journal_of(journal).lines("hold")), what="the held job")
    return job_id


def let_go(journal: Path) -> None:
    Path(f"{journal}.end").touch()


async def test_a_draining_worker_keeps_its_jobs_hears_a_cancel_and_takes_no_more(
    running: Running, db: Database, tmp_path: Path
) -> None:
    client, settings, journal = running.client, running.stack.settings, tmp_path / "held"
    leaving = running.worker(env={"OUTLAST_SHUTDOWN_SECONDS": "60"})
    await running.workers_entered(1)
    jobs = [hold(client, journal) for _ in range(HELD)]
    staying = running.worker(env={"OUTLAST_SHUTDOWN_SECONDS": "60"})
    await running.workers_entered(2)

    leaving.send(signal.SIGTERM)
    drainer = await draining(db, settings.suspect_seconds)
    later = client.submit_all("test.steps", [{"journal": str(tmp_path / "later")}] * HELD)
    for job_id in later:
        client.wait_for(job_id, "done")
    assert {int(line[2]) for line in journal_of(tmp_path / "later").lines("start")} <= set(children(staying.pid))

    client.cancel(jobs[0])
    wait_until(lambda: _said_of(leaving, "lease_lost", jobs[0]), what="the cancel to be heard")

    # Heartbeats go on for longer than a lease, and nobody takes what it runs.
    end = time.monotonic() + 1.2 * settings.lease_seconds
    while time.monotonic() < end:
        assert drainer in {one.id for one in await Fleet(db).live(settings.lease_seconds)}
        await asyncio.sleep(0.05)
    let_go(journal)
    assert leaving.wait(20) == 0

    assert client.job(jobs[0])["state"] == "cancelled"
    for job_id in jobs[1:]:
        job = client.job(job_id)
        assert (job["state"], job["attempt"], job["crashes"]) == ("done", 1, 0)
    assert journal_of(journal).count("start") == HELD
    assert sorted(line[0] for line in journal_of(journal).lines("perform")) == sorted(jobs[1:])
    assert await conservation(db) == []


async def test_deploys_charge_nothing_and_a_second_signal_hurries_them(
    running: Running, db: Database, tmp_path: Path
) -> None:
    client, journal = running.client, tmp_path / "journal"
    env = {"OUTLAST_SHUTDOWN_SECONDS": "60"}
    worker = running.worker(env=env)
    await running.workers_entered(1)
    job_id = hold(client, journal, max_retries=0)
    for rollout in range(1, ROLLOUTS):
        worker.send(signal.SIGTERM)
        await draining(db, running.stack.settings.suspect_seconds)
        assert client.job(job_id)["state"] == "running", "the grace is honoured"
        worker.send(signal.SIGTERM)
        assert worker.wait(20) == 0
        job = client.job(job_id)
        assert (job["state"], job["retries"]["used"], job["crashes"]) == ("queued", 0, 0)
        worker = running.worker(env=env)
        wait_until(lambda: journal_of(journal).count("hold") == rollout + 1, what="the next start")  # noqa: B023
    let_go(journal)

    job = client.wait_for(job_id, "done")
    assert (job["attempt"], job["retries"]["used"], job["crashes"]) == (ROLLOUTS, 0, 0)
    ends = [attempt["end"] for attempt in client.timeline(job_id)["attempts"]]
    assert ends == ["released"] * (ROLLOUTS - 1) + ["done"]
    assert journal_of(journal).count("perform") == 1
    assert await conservation(db) == []

    # A child that dies instead of draining is a crash, and the exit code says that not all went well.
    crashed = hold(client, tmp_path / "crashed")
    worker.send(signal.SIGTERM)
    await draining(db, running.stack.settings.suspect_seconds)
    os.kill(client.timeline(crashed)["attempts"][0]["worker"]["pid"], signal.SIGKILL)
    assert worker.wait(20) == 1
    assert (client.job(crashed)["state"], client.job(crashed)["crashes"]) == ("queued", 1)


def test_an_idle_worker_ends_without_waiting_for_its_read_of_the_broker(stack: Stack) -> None:
    block_seconds = 9.0
    worker = stack.worker(HANDLERS, env={"OUTLAST_BLOCK_SECONDS": str(block_seconds)})
    worker.wait_for_output("group_made")
    pids = children(worker.pid)

    began = time.monotonic()
    assert worker.stop(20) == 0
    assert time.monotonic() - began < block_seconds
    assert not any(map(is_running, pids))


def test_a_worker_told_to_stop_while_it_starts_ends_as_one_that_has_drained(stack: Stack) -> None:
    worker = stack.worker(HANDLERS)
    worker.wait_for_output("child_ordered")

    assert worker.stop(20) == 0
    assert "killed by signal" not in worker.stderr


def _said_of(process: Process, event: str, job_id: str) -> bool:
    return any(f'"{event}"' in line and job_id in line for line in process.stderr.splitlines())
