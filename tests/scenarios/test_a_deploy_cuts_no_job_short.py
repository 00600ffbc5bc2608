"""Whoever stops a worker, and however: what runs finishes, and nothing more begins."""

from __future__ import annotations

import os
import signal
import time
from uuid import UUID

from tests.processes import children, wait_until
from tests.scenarios.premises import Premises
from tests.scenarios.told_jobs import ToldJobs

SOME_LOOKS_SECONDS = 2.0  # a supervisor looks for last starts twice a second


def until_draining(premises: Premises, count: int) -> None:
    wait_until(lambda: sum(one.draining for one in premises.heard("worker")) == count, 30, what="the drain")


def test_a_stop_that_reaches_every_process_of_a_service_lets_its_jobs_finish(premises: Premises) -> None:
    """A service manager signals each process of a group: children took the one passed on to them for a second."""
    told = ToldJobs(premises)
    stopped = {name: told.worker(QUEUES=name, SHUTDOWN_SECONDS="60") for name in ("parent-first", "children-first")}
    jobs = {name: told.submit(name, queue=name, max_retries=0) for name in stopped}
    told.until_started(*jobs)

    for name, worker in stopped.items():
        pids = [worker.pid, *children(worker.pid)]
        for pid in reversed(pids) if name == "children-first" else pids:
            os.kill(pid, signal.SIGTERM if name == "parent-first" else signal.SIGINT)
    until_draining(premises, len(stopped))
    assert {premises.client.job(job_id)["state"] for job_id in jobs.values()} == {"running"}
    for name in jobs:
        told.tell(name, 1, "pay")

    assert [worker.wait(60) for worker in stopped.values()] == [0] * len(stopped)
    for job_id in jobs.values():
        job = premises.client.job(job_id)
        assert (job["state"], job["attempt"], job["crashes"]) == ("done", 1, 0)


def test_a_worker_that_drains_begins_no_last_start(premises: Premises) -> None:
    """A supervisor that had been told to stop went on to start processes for jobs before their last start."""
    told = ToldJobs(premises)
    worker = told.worker(SHUTDOWN_SECONDS="60")
    told.submit("held")
    waiting = told.submit("waiting", delay_seconds=3_600)
    told.until_started("held")
    worker.send(signal.SIGTERM)
    until_draining(premises, 1)

    premises.sql("UPDATE outbox SET solo = true, deferred = false, due_at = now() WHERE job_id = $1", UUID(waiting))
    time.sleep(SOME_LOOKS_SECONDS)  # the promise is that nothing happens meanwhile
    told.tell("held", 1, "pay")

    assert worker.wait(60) == 0, worker.log_tail()
    assert told.lines("start") == [("held", 1)]
    assert premises.client.job(waiting)["state"] == "queued"
    premises.client.cancel(waiting)
