"""A worker that lost its lease comes back, at whatever moment, and changes nothing."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator

import pytest

from tests.processes import Process, children, wait_until
from tests.scenarios.premises import Premises
from tests.scenarios.told_jobs import ToldJobs

KINDS = ("told.job", "told.thread")
MOMENTS = ("runs", "waits", "done")
WORDS = ("return", "pay", "show", "later", "again", "bury")


@pytest.fixture
def frozen() -> Iterator[list[int]]:
    """The processes a test froze; none stays so."""
    pids: list[int] = []
    yield pids
    thaw(pids)


def freeze(worker: Process, frozen: list[int]) -> None:
    for pid in (worker.pid, *children(worker.pid)):
        frozen.append(pid)
        os.kill(pid, signal.SIGSTOP)


def thaw(frozen: list[int]) -> None:
    while frozen:
        os.kill(frozen.pop(), signal.SIGCONT)


def test_a_frozen_worker_that_thaws_while_another_runs_retried_or_finished_its_jobs_changes_none(
    premises: Premises, frozen: list[int]
) -> None:
    """A late completion, failure, progress or effect of a worker that was given up overwrote what its successor did."""
    told = ToldJobs(premises)
    first = told.worker()
    cases = {"-".join(case): case for case in itertools.product(KINDS, MOMENTS, WORDS)}
    jobs = {name: told.submit(name, kind=kind) for name, (kind, _, _) in cases.items()}
    told.until_started(*jobs)
    told.worker()
    freeze(first, frozen)
    told.until_started(*jobs, attempt=2)

    for name, (_, moment, _) in cases.items():
        if moment != "runs":
            told.tell(name, 2, "pay later" if moment == "waits" else "pay")
            told.client.wait_for(jobs[name], "retrying" if moment == "waits" else "done")
    running = [name for name, (_, moment, _) in cases.items() if moment == "runs"]
    wait_until(lambda: premises.pending() == len(running), 30, what="one entry in hand for each job that runs")
    before = {name: told.client.job(job_id) for name, job_id in jobs.items()}

    for name, (_, _, word) in cases.items():
        told.tell(name, 1, word)
    thaw(frozen)
    wait_until(lambda: fenced(first) == set(jobs.values()), 30, what="the thawed worker to be refused everywhere")

    assert {name: told.client.job(job_id) for name, job_id in jobs.items()} == before
    assert premises.pending() == len(running), "the entries of the jobs that run are their holder's"
    for name in running:
        told.tell(name, 2, "pay")
    for name, (_, moment, _) in cases.items():
        if moment == "waits":
            told.client.cancel(jobs[name])
        else:
            assert told.client.wait_for(jobs[name], "done")["result"] == {"attempt": 2}
    assert sorted(told.lines("pay")) == sorted((name, 2) for name in jobs)


def fenced(worker: Process) -> set[str]:
    """The jobs whose endings this worker was refused."""
    lines = [line for line in worker.stderr.splitlines() if '"event": "fenced"' in line]
    return {line.partition('"job": "')[2].partition('"')[0] for line in lines}
