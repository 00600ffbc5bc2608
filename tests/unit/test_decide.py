"""What becomes of a job, by how its run ended and what budget is left."""

from __future__ import annotations

import pytest

from app.domain.decide import (
    Budget,
    Fenced,
    Final,
    Interrupted,
    OutOfTime,
    Passing,
    Returned,
    decide,
)
from app.domain.leased import LeasedJob
from app.domain.outcomes import Bury, Done, Failure, Gone, Outcome, Release, Retry
from app.domain.states import AttemptEnd, Reason
from tests.unit.leased import a_job

FAILURE = Failure("ValueError", "no", "0123456789abcdef")
BUDGET = Budget(base_seconds=1.0, cap_seconds=300.0, releases_max=3)


def decided(ending: Returned | Passing | Final | OutOfTime | Interrupted | Fenced, job: LeasedJob) -> Outcome:
    return decide(ending, job, BUDGET, random=0.5)


def test_a_result_is_done() -> None:
    assert decided(Returned("{}"), a_job()) == Done("{}")


@pytest.mark.parametrize("retries", [0, 1])
def test_a_passing_failure_is_retried_while_the_budget_lasts(retries: int) -> None:
    assert decided(Passing(FAILURE), a_job(retries=retries)) == Retry(FAILURE, 0.5 * 2**retries)


def test_a_passing_failure_past_the_budget_is_dead() -> None:
    assert decided(Passing(FAILURE), a_job(retries=2)) == Bury(Reason.RETRIES_EXHAUSTED, FAILURE)
    assert decided(Passing(FAILURE), a_job(max_retries=0)) == Bury(Reason.RETRIES_EXHAUSTED, FAILURE)


def test_a_job_that_only_waited_for_a_quota_burns_no_retry() -> None:
    throttled = Passing(FAILURE, retry_after=7, quota=True)
    assert decided(throttled, a_job(retries=2)) == Retry(FAILURE, 7.5, charged=False)


def test_waiting_for_a_quota_has_a_limit_and_then_burns_retries() -> None:
    throttled = Passing(FAILURE, quota=True)
    assert decided(throttled, a_job(releases=3)) == Retry(FAILURE, 0.5, charged=True)
    assert decided(throttled, a_job(releases=3, retries=2)) == Bury(Reason.RETRIES_EXHAUSTED, FAILURE)


def test_a_final_failure_is_dead_under_its_reason_whatever_the_budget() -> None:
    assert decided(Final(Reason.INVALID_OUTPUT, FAILURE), a_job()) == Bury(Reason.INVALID_OUTPUT, FAILURE)


def test_a_time_out_is_retried_on_the_budget_and_then_dead() -> None:
    assert decided(OutOfTime(FAILURE), a_job()) == Retry(FAILURE, 0.5, end=AttemptEnd.TIMED_OUT)
    assert decided(OutOfTime(FAILURE), a_job(retries=2)) == Bury(Reason.TIMED_OUT, FAILURE, end=AttemptEnd.TIMED_OUT)


def test_a_deadline_that_passes_while_the_job_runs_is_final() -> None:
    assert decided(OutOfTime(FAILURE), a_job(deadline_binds=True)) == Bury(
        Reason.EXPIRED, FAILURE, end=AttemptEnd.TIMED_OUT
    )


def test_a_shutdown_gives_the_job_back_and_a_lost_lease_writes_nothing() -> None:
    assert decided(Interrupted("shutdown"), a_job(retries=2)) == Release("shutdown")
    assert decided(Fenced(), a_job()) == Gone()
