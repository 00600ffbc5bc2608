"""A crash is counted by those who survive it, whatever it looks like, and costs nobody a slot."""

from __future__ import annotations

import itertools
import os
import signal

from tests.handlers.told import WAYS_TO_DIE
from tests.processes import wait_until
from tests.scenarios.premises import Premises
from tests.scenarios.told_jobs import ToldJobs

CRASHES_MAX = 3
SLOTS = 2


def test_every_way_to_die_charges_a_crash_and_the_third_one_is_the_last(premises: Premises) -> None:
    """Attempts were counted on the way out of the living process only: a job that killed it was started for ever."""
    told = ToldJobs(premises)
    told.worker(WORKER_CONCURRENCY="1", SOLO_PROCESSES="1")
    jobs = {way: told.submit(way, max_retries=0) for way in WAYS_TO_DIE}
    for way in WAYS_TO_DIE:
        told.tell(way, 1, f"pay {way}")
        told.tell(way, 2, "pay")
    poison = {name: told.submit(name, max_retries=0) for name in ("poison-1", "poison-2")}
    for name in poison:
        for attempt in range(1, CRASHES_MAX + 1):
            told.tell(name, attempt, "exit-137")
        told.tell(name, CRASHES_MAX + 1, "pay")

    for way, job_id in jobs.items():
        job = told.client.wait_for(job_id, "done", seconds=90)
        assert (way, job["attempt"], job["crashes"], job["retries"]["used"]) == (way, 2, 1, 0)
        assert told.client.timeline(job_id)["attempts"][0]["end"] == "lost"
        assert told.lines("pay").count((way, 1)) == 1, "the effect on record is read back"
    for name, job_id in poison.items():
        job = told.client.wait_for(job_id, "dead", seconds=90)
        assert (job["reason"], job["crashes"]) == ("crashes_exhausted", CRASHES_MAX)
        assert [attempt for one, attempt in told.lines("start") if one == name] == [1, 2, 3]
        answer = told.client.http.post(f"/v1/dead-letters/{job_id}/replay", json={"reason": "mended"})
        assert answer.status_code == 202
        assert told.client.wait_for(job_id, "done", seconds=60)["attempt"] == CRASHES_MAX + 1


def test_the_slots_of_a_killed_process_are_free_and_no_more_than_that(premises: Premises) -> None:
    """Jobs whose process had died were counted as running: their slots were taken for ever."""
    told = ToldJobs(premises)
    told.worker(WORKER_CONCURRENCY=str(SLOTS))
    jobs = {name: told.submit(name) for name in ("one", "two", "three")}
    wait_until(lambda: len(told.lines("start")) == SLOTS, 60, what="as many jobs as slots")

    os.kill(told.pid_of(told.lines("start")[0][0]), signal.SIGKILL)
    wait_until(lambda: len(told.lines("start")) >= 2 * SLOTS, 60, what="as many again")
    assert len(told.lines("start")) == 2 * SLOTS, "one waits"
    for name, attempt in itertools.product(jobs, (1, 2)):
        told.tell(name, attempt, "return")

    for job_id in jobs.values():
        assert told.client.wait_for(job_id, "done")["crashes"] <= 1
    assert len(told.lines("start")) == len(jobs) + SLOTS
