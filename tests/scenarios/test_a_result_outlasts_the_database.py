"""A database that is away when a handler returns costs the job nothing: its result waits in the worker."""

from __future__ import annotations

import time

from tests.fundamentals.scale import scaled
from tests.processes import wait_until
from tests.scenarios.premises import Premises
from tests.scenarios.road import Road
from tests.scenarios.told_jobs import LEASE_SECONDS, ToldJobs


def test_a_result_that_cannot_be_written_for_a_while_is_written_later_and_acknowledged_only_then(
    premises: Premises,
) -> None:
    """The entry was acknowledged before the commit, or the database's error was taken for the job's failure."""
    told = ToldJobs(premises)
    with Road(premises.settings.database_url.get_secret_value()) as road:
        told.worker(DATABASE_URL=road.url)
        for leases in (0.5, scaled(2, 3)):
            returning, running = f"returning-{leases}", f"running-{leases}"
            jobs = {name: told.submit(name, max_retries=0) for name in (returning, running)}
            for name in jobs:
                told.tell(name, 1, "pay rest")
                told.until_said("pay", name)
                told.tell(name, 2, "pay")
            # On record, too: what was called and is not on record would rightly be called again.
            for job_id in jobs.values():
                wait_until(lambda: recorded(told, job_id), 30, what="the record of the effect")  # noqa: B023

            in_hand = told.in_hand()
            road.close(reset=True)
            told.go(returning, 1)
            told.until_said("returned", returning)
            time.sleep(leases * LEASE_SECONDS)  # for so long it is away
            assert told.in_hand() == in_hand, "nothing is acknowledged before it is on record"
            assert told.client.job(jobs[returning])["state"] == "running"
            road.open()
            told.go(running, 1)

            job = told.client.wait_for(jobs[returning], "done", seconds=60)
            assert (job["attempt"], job["crashes"], job["result"]) == (1, 0, {"attempt": 1})
            job = told.client.wait_for(jobs[running], "done", seconds=60)
            assert (job["attempt"] <= 2, job["crashes"], job["retries"]["used"], job["error"]) == (True, 0, 0, None)
            assert sorted(told.lines("pay")[-2:]) == sorted([(returning, 1), (running, 1)])
        told.until_empty()
        premises.stop_workers()


def recorded(told: ToldJobs, job_id: str) -> bool:
    return [effect["state"] for effect in told.client.effects(job_id)] == ["recorded"]
