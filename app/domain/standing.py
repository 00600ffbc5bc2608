"""Where a job stands, and why it cannot be moved the way it was asked."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from app.domain.errors import Refused
from app.domain.states import Home, Reason, State


@dataclass(frozen=True, slots=True)
class Standing:
    """`home` is None only when the conservation law is broken. `state` is set once the job has ended.

    `expired`: dead, and its deadline has passed. `blocked`: an effect of it has an intent without a
    result that must not be repeated.
    """

    job_id: UUID
    home: Home | None
    state: State | None
    reason: str | None
    retries: int
    max_retries: int
    expired: bool
    blocked: bool


def job_not_found(job_id: UUID) -> Refused:
    return Refused("job-not-found", 404, f"No job {job_id}.", extra=_about(job_id))


def terminal(standing: Standing) -> Refused:
    """A cancel of a job that has ended otherwise."""
    return _conflict(standing, "job-terminal", f"The job is {standing.state} already.")


def restless(job_id: UUID) -> Refused:
    """A cancel that missed the job every time it moved; asking again is safe."""
    return Refused("job-moving", 503, "The job kept moving; ask again.", extra=_about(job_id), retry_after=1)


def unretryable(standing: Standing) -> Refused:
    """Why a caller's retry of this job was refused."""
    if standing.state is not State.DEAD:
        return _not_dead(standing)
    if standing.retries >= standing.max_retries and standing.reason != Reason.UNKNOWN_KIND:
        used = f"{standing.retries} of {standing.max_retries} retries are used; an operator may replay the job."
        return _conflict(standing, "retry-budget-exhausted", used)
    if standing.blocked:
        return effect_blocked(standing)
    if standing.expired:
        return _conflict(standing, "deadline-passed", "The deadline of the job has passed.")
    return _conflict(standing, "job-moving", "The job moved meanwhile; ask again.")


def unreplayable(standing: Standing) -> Refused:
    """Why a replay of this job was refused."""
    if standing.state is not State.DEAD:
        return _not_dead(standing)
    if standing.blocked:
        return effect_blocked(standing)
    return _conflict(standing, "job-moving", "The job moved meanwhile; ask again.")


def undiscardable(standing: Standing) -> Refused:
    """Why a discard of this job was refused."""
    return _not_dead(standing)


def unresolvable(standing: Standing) -> Refused:
    """Why no effect of this job can be resolved."""
    return _not_dead(standing)


def effect_blocked(standing: Standing) -> Refused:
    detail = "Nobody knows whether an effect of the job happened: resolve it first (outlast effect resolve)."
    return _conflict(standing, "effect-unknown", detail)


def _not_dead(standing: Standing) -> Refused:
    if standing.home is Home.OUTCOMES:
        return terminal(standing)
    return _conflict(standing, "job-not-dead", "The job is no dead letter: it waits or runs.")


def _conflict(standing: Standing, code: str, detail: str) -> Refused:
    return Refused(code, 409, detail, extra=_about(standing.job_id))


def _about(job_id: UUID) -> dict[str, str]:
    return {"job_id": str(job_id)}
