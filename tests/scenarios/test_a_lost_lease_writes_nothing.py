"""A worker that lost its lease comes back, at whatever moment, and changes nothing."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.failpoints import Action, Point, fired, order, pid_of
from tests.processes import Process, children, wait_until
from tests.scenarios.premises import Premises
from tests.scenarios.road import Road
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
    # What the frozen one had in hand is taken from it; jobs that came straight from the database have no entry.
    wait_until(lambda: len(set(told.in_hand().values())) <= 1, 30, what="entries in the hands of the other alone")
    wait_until(lambda: len(told.in_hand()) <= len(running), 30, what="the others' entries to be acknowledged")
    in_hand = told.in_hand()
    before = {name: told.client.job(job_id) for name, job_id in jobs.items()}

    for name, (_, _, word) in cases.items():
        told.tell(name, 1, word)
    thaw(frozen)
    wait_until(lambda: fenced(first) == set(jobs.values()), 30, what="the thawed worker to be refused everywhere")

    assert {name: told.client.job(job_id) for name, job_id in jobs.items()} == before
    assert told.in_hand() == in_hand, "the entries of the jobs that run are their holder's"
    for name in running:
        told.tell(name, 2, "pay")
    for name, (_, moment, _) in cases.items():
        if moment == "waits":
            told.client.cancel(jobs[name])
        else:
            assert told.client.wait_for(jobs[name], "done")["result"] == {"attempt": 2}
    assert sorted(told.lines("pay")) == sorted((name, 2) for name in jobs)


def test_an_ending_that_is_written_after_the_lease_was_taken_is_refused_by_the_record(
    premises: Premises, tmp_path: Path
) -> None:
    """A worker that froze between its handler's end and its write put the old result over the new run."""
    told = ToldJobs(premises)
    orders = tmp_path / "orders"
    orders.mkdir(mode=0o700)
    workers = [told.worker(FAILPOINTS=str(orders)) for _ in range(2)]
    for nth, word in enumerate(("return", "again", "bury")):
        order(orders, Action.STOP, Point.FINISH_RETURNED)
        told.tell(word, 1, f"pay {word}")
        job_id = told.submit(word)
        told.until_started(word, attempt=2)
        before = told.client.job(job_id)

        os.kill(pid_of(fired(orders, Point.FINISH_RETURNED)[nth]), signal.SIGCONT)
        wait_until(lambda: job_id in fenced(workers[0]) | fenced(workers[1]), 30, what="the refusal")  # noqa: B023
        assert told.client.job(job_id) == before
        told.tell(word, 2, "pay")
        assert told.client.wait_for(job_id, "done")["result"] == {"attempt": 2}
        assert told.lines("pay")[nth:] == [(word, 1)], "the effect on record is read back"


def test_a_worker_cut_off_from_the_database_ends_its_jobs_by_itself_and_comes_back(premises: Premises) -> None:
    """A handler whose worker nobody could hear went on, beside the one that had been started in its place."""
    told = ToldJobs(premises)
    with Road(premises.settings.database_url.get_secret_value()) as road:
        told.worker(DATABASE_URL=road.url, QUEUES="default,its-own")
        jobs = {name: told.submit(name) for name in ("waiting", "paying")}
        told.until_started(*jobs)
        told.worker()

        road.close(reset=True)
        told.until_started(*jobs, attempt=2)
        told.tell("paying", 1, "pay")
        told.until_said("cancelled", "waiting")
        for name, job_id in jobs.items():
            told.tell(name, 2, "pay")
            assert told.client.wait_for(job_id, "done")["result"] == {"attempt": 2}

        road.open()
        told.tell("after", 1, "pay")
        assert told.client.wait_for(told.submit("after", queue="its-own"), "done", seconds=60)["attempt"] == 1
        assert sorted(told.lines("pay")) == [("after", 1), ("paying", 2), ("waiting", 2)]
        assert {told.client.job(job_id)["attempt"] for job_id in jobs.values()} == {2}
        premises.stop_workers()


def fenced(worker: Process) -> set[str]:
    """The jobs whose endings this worker was refused."""
    lines = [line for line in worker.stderr.splitlines() if '"event": "fenced"' in line]
    return {line.partition('"job": "')[2].partition('"')[0] for line in lines}
