"""Why a job is where it is: one reason, the next event, and who must act.

Waiting jobs are explained by the first rule of `_WAITING` that applies, running ones by the worker that
holds them, dead ones by their reason. Everything is decided from what is passed in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never
from uuid import UUID

from app.domain.states import Reason, State
from app.domain.views import JobView, JsonText, dump

COUNT_MAX = 10_000


class Who(StrEnum):
    """Who brings the next event about."""

    NOBODY = "nobody"
    TIME = "time"
    OUTLAST = "outlast"
    HANDLER = "handler"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Fleet:
    """The live processes as a job's queue sees them, at `at` by the database clock.

    `knowing` of the `workers` know the job's kind. `broker_ok` None: no process has an opinion.
    """

    at: datetime
    workers: int
    knowing: int
    slots: int
    relays: int
    leader: bool
    broker_ok: bool | None


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a job's lease. `host` and `pid` are None when the worker is not listed."""

    worker_id: UUID
    host: str | None
    pid: int | None
    gone: bool
    left_cause: str | None
    silent_seconds: float | None
    run_until: datetime


@dataclass(frozen=True, slots=True)
class Clocks:
    """The settings that decide when something happens, in seconds."""

    suspect_seconds: float
    lease_seconds: float
    republish_seconds: float
    unknown_kind_seconds: float
    broker: bool


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a job's explanation depends on beside the job. Counts stop at 10,000."""

    fleet: Fleet
    clocks: Clocks
    busy: int = 0
    ahead: int = 0
    solo: bool = False
    holder: Holder | None = None
    unknown_effects: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """`reason` is a stable word, `summary` the sentence for people. `next_at` None: no time is known."""

    job_id: UUID
    state: State | None
    reason: str
    summary: str
    next_event: str | None
    next_at: datetime | None
    who_acts: Who


def explanation_json(explanation: Explanation) -> JsonText:
    """`{"job_id", "state", "reason", "summary", "next_event", "next_at", "who_acts"}`."""
    return dump({name: getattr(explanation, name) for name in Explanation.__slots__})


def explain(job: JobView, around: Surroundings) -> Explanation:
    """The explanation of `job`."""
    match job.state:
        case State.SCHEDULED | State.RETRYING:
            return _cut_by_deadline(job, _deferred(job))
        case State.QUEUED:
            return _cut_by_deadline(job, _queued(job, around))
        case State.LEASED | State.RUNNING:
            return _held(job, around)
        case State.DEAD:
            return _dead(job, around)
        case State.DONE:
            return _say(job, "done", "The job is done; its result is final.", None, Who.NOBODY)
        case State.CANCELLED:
            return _say(job, job.reason or "cancelled", "The job was cancelled; that is final.", None, Who.NOBODY)
        case None:
            text = "No table holds the job, which must not happen."
            return _say(job, "homeless", text, "run `outlast audit`", Who.OPERATOR)
        case _:
            assert_never(job.state)


def _say(
    job: JobView, reason: str, summary: str, next_event: str | None, who: Who, next_at: datetime | None = None
) -> Explanation:
    return Explanation(job.id, job.state, reason, summary, next_event, next_at, who)


def _cut_by_deadline(job: JobView, explanation: Explanation) -> Explanation:
    """The deadline is the next event when it comes before what else has a time."""
    if job.deadline is None or (explanation.next_at is not None and explanation.next_at <= job.deadline):
        return explanation
    if explanation.next_at is None and explanation.who_acts is not Who.OPERATOR:
        return explanation
    return replace(explanation, next_event="its deadline passes: dead, expired", next_at=job.deadline)


def _deferred(job: JobView) -> Explanation:
    if job.state is State.SCHEDULED:
        return _say(job, "not_due", "The job is not due yet.", "it becomes due", Who.TIME, job.due_at)
    text = f"Attempt {job.attempt} failed{_failure(job)}; the job backs off before the next one."
    return _say(job, "backing_off", text, "the next attempt becomes due", Who.TIME, job.due_at)


def _queued(job: JobView, around: Surroundings) -> Explanation:
    return next(found for rule in _WAITING if (found := rule(job, around)) is not None)


def _no_worker(job: JobView, around: Surroundings) -> Explanation | None:
    if around.fleet.workers:
        return None
    text = f"No live worker serves the queue {job.queue}."
    return _say(job, "no_worker", text, "a worker that serves the queue starts", Who.OPERATOR)


def _kind_unknown(job: JobView, around: Surroundings) -> Explanation | None:
    if around.fleet.knowing:
        return None
    seconds = around.clocks.unknown_kind_seconds
    text = f"None of {around.fleet.workers} live workers of the queue {job.queue} knows the kind {job.kind}."
    until = job.due_at + timedelta(seconds=seconds) if job.due_at else None
    return _say(job, "kind_unknown", text, "a worker that knows it starts, or dead: unknown_kind", Who.OPERATOR, until)


def _last_start(job: JobView, around: Surroundings) -> Explanation | None:
    if not around.solo:
        return None
    text = f"Its worker was lost {job.crashes} times, so its last start waits for a process of its own."
    return _say(job, "last_start", text, "a supervisor starts it alone", Who.OUTLAST)


def _draining(job: JobView, around: Surroundings) -> Explanation | None:
    if around.fleet.slots:
        return None
    text = f"Every live worker of the queue {job.queue} is shutting down."
    return _say(job, "workers_draining", text, "a new worker starts", Who.OPERATOR)


def _broker_away(job: JobView, around: Surroundings) -> Explanation | None:
    if not around.clocks.broker or around.fleet.broker_ok is not False:
        return None
    text = f"The broker is away; workers claim straight from PostgreSQL. {_ahead(around)}"
    return _say(job, "broker_away", text, "a worker with a free slot claims it", Who.OUTLAST)


def _waiting_for_slot(job: JobView, around: Surroundings) -> Explanation | None:
    if around.busy < around.fleet.slots:
        return None
    text = f"All {around.fleet.slots} slots of the queue {job.queue} are busy. {_ahead(around)}"
    return _say(job, "waiting_for_slot", text, "a slot becomes free", Who.OUTLAST)


def _no_relay(job: JobView, around: Surroundings) -> Explanation | None:
    if not around.clocks.broker or around.fleet.leader:
        return None
    text = "No relay publishes; workers sweep up what has been due for a while."
    swept = job.due_at + timedelta(seconds=2 * around.clocks.republish_seconds) if job.due_at else None
    return _say(job, "no_relay", text, "a worker sweeps it up", Who.OUTLAST, swept)


def _known_to_some(job: JobView, around: Surroundings) -> Explanation | None:
    if around.fleet.knowing == around.fleet.workers:
        return None
    text = f"{around.fleet.knowing} of {around.fleet.workers} live workers know the kind and claim it themselves."
    return _say(job, "known_to_some", text, "one of them claims it", Who.OUTLAST)


def _in_delivery(job: JobView, around: Surroundings) -> Explanation | None:
    return _say(job, "in_delivery", f"The job is due. {_ahead(around)}", "a worker claims it", Who.OUTLAST)


_WAITING: tuple[Callable[[JobView, Surroundings], Explanation | None], ...] = (
    _no_worker,
    _kind_unknown,
    _last_start,
    _draining,
    _broker_away,
    _waiting_for_slot,
    _no_relay,
    _known_to_some,
    _in_delivery,
)


def _held(job: JobView, around: Surroundings) -> Explanation:
    holder = around.holder
    if holder is None:
        return _say(job, "moving", "The job is changing hands right now.", "ask again", Who.OUTLAST)
    place = f"process {holder.pid} on {holder.host}" if holder.host else f"worker {holder.worker_id}"
    if holder.gone or holder.silent_seconds is None:
        cause = f" ({holder.left_cause})" if holder.left_cause else ""
        return _say(job, "worker_gone", f"Its worker, {place}, is gone{cause}.", "the job is rescued", Who.OUTLAST)
    if holder.silent_seconds > around.clocks.suspect_seconds:
        text = f"Its worker, {place}, has been silent for {holder.silent_seconds:.1f} s."
        rescued = around.fleet.at + timedelta(seconds=around.clocks.lease_seconds - holder.silent_seconds)
        return _say(job, "worker_silent", text, "the job is rescued, or the worker is heard", Who.OUTLAST, rescued)
    if job.state is State.LEASED:
        text = f"The job waits inside {place} for its turn."
        return _say(job, "waiting_in_worker", text, "its handler starts", Who.OUTLAST)
    text = f"Attempt {job.attempt} runs in {place}."
    return _say(job, "running", text, "the handler returns, or its time is up", Who.HANDLER, holder.run_until)


def _dead(job: JobView, around: Surroundings) -> Explanation:
    reason = Reason(job.reason or "")
    text = f"{_DEAD[reason]}{_failure(job)}."
    if around.unknown_effects:
        keys = ", ".join(around.unknown_effects)
        return _say(
            job, reason, f"{text} Unknown effects: {keys}.", "`outlast effect resolve`, then replay", Who.OPERATOR
        )
    return _say(job, reason, text, "an operator replays or discards it", Who.OPERATOR)


_DEAD: dict[Reason, str] = {
    Reason.PERMANENT_ERROR: "The handler failed in a way no retry can help",
    Reason.RETRIES_EXHAUSTED: "Every retry in its budget failed, last",
    Reason.CRASHES_EXHAUSTED: "Its worker was lost at every start",
    Reason.INVALID_INPUT: "The handler's model refused the input",
    Reason.INVALID_OUTPUT: "What the handler returned is not its result",
    Reason.TIMED_OUT: "Its attempts ran out of time until the budget was used up",
    Reason.EXPIRED: "Its deadline passed",
    Reason.EFFECT_UNKNOWN: "Nobody knows whether an effect happened, and it must not be repeated",
    Reason.EFFECT_MISMATCH: "An effect was asked for with other arguments than are on record",
    Reason.UNKNOWN_KIND: "No worker knew its kind for too long",
    Reason.RESULT_TOO_LARGE: "Its result is larger than may be stored",
}


def _ahead(around: Surroundings) -> str:
    count = f"{COUNT_MAX:,}+" if around.ahead >= COUNT_MAX else f"{around.ahead:,}"
    return f"Jobs that go first: {count}."


def _failure(job: JobView) -> str:
    if job.error is None:
        return ""
    error = json.loads(job.error)
    return f" ({error.get('type')}: {error.get('message')})"
