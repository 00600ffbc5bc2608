"""The heartbeat's answer is the truth about what this process holds."""

from __future__ import annotations

import time
from typing import cast
from uuid import UUID, uuid4

from app.domain.errors import DatabaseAway
from app.domain.leased import LeasedJob
from app.store.fleet import Beat
from tests.unit.leased import a_job
from workers.attempt import Attempt
from workers.heart import Answer, Heart
from workers.runs import Run, Runs

HEART = cast("Heart", None)


async def show_nothing(_job: UUID, _attempt: int, _text: str) -> None:
    return None


class Interrupted:
    """In place of an attempt: counts how often it is to end."""

    def __init__(self) -> None:
        self.times = 0

    def interrupt(self) -> None:
        self.times += 1


def running(runs: Runs, job: LeasedJob | None = None) -> Run:
    run = Run(job or a_job(id=uuid4()), None, HEART, show_nothing)
    run.work = cast("Attempt", Interrupted())
    runs.add(run)
    return run


def answer(*attempts: tuple[UUID, int], sent_at: float | None = None, of: list[UUID] | None = None) -> Answer:
    beat = Beat(known=True, leases=frozenset(attempts), of=None if of is None else frozenset(of))
    return Answer(beat, time.monotonic() if sent_at is None else sent_at)


def no_stragglers() -> int:
    return 0


async def test_a_run_that_the_answer_lacks_is_taken_away_and_cancelled() -> None:
    runs = Runs(10, no_stragglers)
    kept, lost = running(runs), running(runs)

    runs.judge(answer(kept.attempt))

    assert lost.lost
    assert not kept.lost
    assert [cast("Interrupted", run.work).times for run in (kept, lost)] == [0, 1]


async def test_an_answer_to_a_heartbeat_sent_before_the_claim_says_nothing_about_the_run() -> None:
    runs = Runs(10, no_stragglers)
    run = running(runs)

    runs.judge(answer(sent_at=run.since - 0.001))

    assert not run.lost


async def test_another_attempt_of_the_same_job_is_not_ours() -> None:
    runs = Runs(10, no_stragglers)
    run = running(runs, a_job(attempt=1))

    runs.judge(answer((run.job.id, 2)))

    assert run.lost


async def test_a_lease_that_nothing_explains_is_given_back_at_the_second_answer() -> None:
    runs = Runs(10, no_stragglers)
    orphan = (uuid4(), 1)

    assert runs.judge(answer(orphan)) == []
    assert runs.judge(answer(orphan)) == [orphan]


async def test_a_lease_that_an_open_claim_may_explain_is_left_alone_until_that_claim_is_answered() -> None:
    runs = Runs(10, no_stragglers)
    orphan = (uuid4(), 1)

    with runs.claiming():
        for _ in range(3):
            assert runs.judge(answer(orphan)) == []
    with runs.claiming():
        assert runs.judge(answer(orphan)) == [orphan], "a later claim does not explain it"


async def test_an_answer_about_some_jobs_says_nothing_about_others() -> None:
    runs = Runs(10, no_stragglers)
    kept, lost, unasked = running(runs), running(runs), running(runs)
    assert runs.jobs() == [kept.job.id, lost.job.id, unasked.job.id]

    runs.judge(answer(kept.attempt, of=[kept.job.id, lost.job.id]))

    assert [run.lost for run in (kept, lost, unasked)] == [False, True, False]


async def test_an_answer_about_some_jobs_clears_nothing_of_suspicion() -> None:
    runs = Runs(10, no_stragglers)
    orphan = (uuid4(), 1)

    assert runs.judge(answer(orphan)) == []
    assert runs.judge(answer(of=[])) == []
    assert runs.judge(answer(orphan)) == [orphan]


async def test_slots_are_kept_by_running_code_and_freed_by_endings_that_only_wait_to_be_written() -> None:
    stuck = 1
    runs = Runs(3, lambda: stuck)
    first, _second = running(runs), running(runs)
    assert runs.free() == 0

    runs.end(first)
    assert runs.free() == 1
    assert runs.running == 1

    runs.remove(first)
    assert (len(runs), runs.free()) == (1, 1)


async def test_endings_beyond_one_full_set_keep_their_slots() -> None:
    runs = Runs(2, no_stragglers)
    for _ in range(3):
        runs.end(running(runs))

    assert runs.free() == 1


async def test_progress_that_cannot_be_shown_fails_no_job() -> None:
    async def away(_job: UUID, _attempt: int, _text: str) -> None:
        raise DatabaseAway("gone")

    await Run(a_job(), None, HEART, away).progress("{}")
