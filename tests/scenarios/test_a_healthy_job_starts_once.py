"""However long a job waits or runs, while its worker lives it is started once."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from app.failpoints import Action, Point, fired, order, pid_of
from tests.fundamentals.scale import scaled
from tests.processes import wait_until
from tests.scenarios.premises import Premises
from tests.scenarios.told_jobs import LEASE_SECONDS, ToldJobs

LONG_LEASES = scaled(2, 5)
# They see the relay at work also on a busy machine, and leave to the broker what it is there for.
PATIENT = {"SUSPECT_SECONDS": str(LEASE_SECONDS - 0.5)}


def test_a_job_that_waits_and_runs_for_many_leases_starts_once(premises: Premises) -> None:
    """A job longer than a fixed idle time-out was run again and again, and one that had waited for it as well."""
    told = ToldJobs(premises)
    for _ in range(2):
        told.worker(WORKER_CONCURRENCY="1")
    long = {name: told.submit(name) for name in ("one", "two")}
    told.until_started(*long)
    behind = {name: told.submit(name) for name in ("three", "four")}
    told.until_published(*behind.values())

    time.sleep(LONG_LEASES * LEASE_SECONDS)  # the promise is that nothing happens meanwhile
    assert sorted(told.lines("start")) == sorted((name, 1) for name in long)
    for name in (*long, *behind):
        told.tell(name, 1, "pay")

    for job_id in (long | behind).values():
        job = told.client.wait_for(job_id, "done")
        assert (job["attempt"], job["crashes"]) == (1, 0)
    assert sorted(told.lines("pay")) == sorted(told.lines("start")) == sorted((name, 1) for name in long | behind)


def test_a_job_that_was_delivered_and_not_yet_claimed_is_run_once_whoever_comes_first(
    premises: Premises, tmp_path: Path
) -> None:
    """A sweep took what had been delivered a moment ago for abandoned, and the job ran twice or not at all."""
    told = ToldJobs(premises)
    orders = tmp_path / "failpoints"
    orders.mkdir(mode=0o700)
    told.worker(QUEUES="default,first", FAILPOINTS=str(orders), **PATIENT)
    told.worker(QUEUES="default,second", WORKER_CONCURRENCY="1", **PATIENT)

    for nth, name in enumerate(("sweep-first", "both-at-once"), 1):
        busy, probe = f"busy-{nth}", f"probe-{nth}"
        told.submit(busy, queue="second")
        told.until_started(busy)
        order(orders, Action.STOP, Point.CLAIM_DELIVERED)
        job_id = told.submit(name)
        [*_, stopped] = wait_until(lambda: fired(orders, Point.CLAIM_DELIVERED)[nth - 1 :], 30, what="the delivery")  # noqa: B023
        time.sleep(1.5 * LEASE_SECONDS)  # by then the entry is idle and its reader is silent

        told.tell(busy, 1, "return")
        if name == "sweep-first":
            told.until_started(name)
        os.kill(pid_of(stopped), signal.SIGCONT)
        told.tell(probe, 1, "return")
        # One claim at a time: the one that was held up is over when this job is done.
        told.client.wait_for(told.submit(probe, queue="first"), "done", seconds=60)
        told.until_started(name)
        told.tell(name, 1, "pay")
        job = told.client.wait_for(job_id, "done")
        assert (job["attempt"], job["crashes"]) == (1, 0)
        assert told.lines("start").count((name, 1)) == told.lines("pay").count((name, 1)) == 1
    told.until_empty()
