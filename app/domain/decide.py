"""From how a run ended to what becomes of the job: one rule, without clock or chance of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from app.domain.leased import LeasedJob
from app.domain.outcomes import Bury, Done, Failure, Gone, Outcome, Release, Retry
from app.domain.retry import backoff_seconds
from app.domain.states import AttemptEnd, Reason


@dataclass(frozen=True, slots=True)
class Returned:
    """The handler returned; `result` is valid JSON text."""

    result: str


@dataclass(frozen=True, slots=True)
class Passing:
    """A failure that may pass. `quota`: only a provider's quota was waited for."""

    failure: Failure
    retry_after: float | None = None
    quota: bool = False


@dataclass(frozen=True, slots=True)
class Final:
    """A failure no retry can help."""

    reason: Reason
    failure: Failure


@dataclass(frozen=True, slots=True)
class OutOfTime:
    """The attempt took longer than it may."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The worker gave the run up for reasons of its own."""

    cause: str


@dataclass(frozen=True, slots=True)
class Fenced:
    """The job is no longer ours."""


Ending = Returned | Passing | Final | OutOfTime | Interrupted | Fenced


@dataclass(frozen=True, slots=True)
class Budget:
    """What retries may cost. An unpaid wait for a quota is a release; of those there are `releases_max`."""

    base_seconds: float
    cap_seconds: float
    releases_max: int


def decide(ending: Ending, job: LeasedJob, budget: Budget, random: float) -> Outcome:
    """What becomes of the job; `random` is in [0, 1)."""
    match ending:
        case Returned(result):
            return Done(result)
        case Passing(failure, retry_after, quota):
            return _again(failure, retry_after, quota, job, budget, random)
        case Final(reason, failure):
            return Bury(reason, failure)
        case OutOfTime(failure):
            return _after_time_out(failure, job, budget, random)
        case Interrupted(cause):
            return Release(cause)
        case Fenced():
            return Gone()
        case _:
            assert_never(ending)


def _again(
    failure: Failure, retry_after: float | None, quota: bool, job: LeasedJob, budget: Budget, random: float
) -> Outcome:
    free = quota and job.releases < budget.releases_max
    if not free and job.retries >= job.max_retries:
        return Bury(Reason.RETRIES_EXHAUSTED, failure)
    tries = job.releases if free else job.retries
    delay = backoff_seconds(tries, budget.base_seconds, budget.cap_seconds, random=random, retry_after=retry_after)
    return Retry(failure, delay, charged=not free)


def _after_time_out(failure: Failure, job: LeasedJob, budget: Budget, random: float) -> Outcome:
    if job.deadline_binds:
        return Bury(Reason.EXPIRED, failure, end=AttemptEnd.TIMED_OUT)
    if job.retries >= job.max_retries:
        return Bury(Reason.TIMED_OUT, failure, end=AttemptEnd.TIMED_OUT)
    delay = backoff_seconds(job.retries, budget.base_seconds, budget.cap_seconds, random=random)
    return Retry(failure, delay, end=AttemptEnd.TIMED_OUT)
