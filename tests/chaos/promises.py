"""What a run promises in seconds, worked out from its records alone. Pure: no clock, no I/O.

Three ways of counting:

| after a fault       | seconds                                                                                   |
|---------------------|-------------------------------------------------------------------------------------------|
| `RUNS_AGAIN`        | from the fault to the next start of each job that it took from its worker                 |
| `FIRST_END`         | from the moment the fault healed to the first job that ended, where jobs were on record   |
| `WAITING_STARTED`   | from the fault to the start of each job that was waiting then, due and never started      |

Only the first rescue of a job counts: later ones back off, and that is meant.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.domain.states import AttemptEnd, State
from tests.chaos.records import AttemptRow, Finding, Fired, History, Verb


class Count(StrEnum):
    RUNS_AGAIN = "runs again"
    FIRST_END = "first end"
    WAITING_STARTED = "waiting jobs started"


@dataclass(frozen=True, slots=True)
class Promise:
    """After `fault` (all of them when empty), `share` of the counted seconds are at most `seconds`."""

    count: Count
    fault: str
    seconds: float
    share: float = 0.99


def broken(history: History, promises: Sequence[Promise]) -> list[Finding]:
    """The promises that were not kept, or of which nothing was seen."""
    found: list[Finding] = []
    for promise in promises:
        seconds = counted(history, promise)
        what = f"{promise.fault}: {promise.count}"
        if not seconds:
            found.append(Finding("no bite", "", f"{what} never"))
        elif (seen := quantile(seconds, promise.share)) > promise.seconds:
            detail = f"{what}, p{100 * promise.share:g} of {len(seconds)} is {seen:.2f} s of {promise.seconds:g}"
            found.append(Finding("promise", "", detail))
    return found


def counted(history: History, promise: Promise) -> list[float]:
    """The seconds that the promise is about, in order."""
    ways = {
        Count.RUNS_AGAIN: runs_again,
        Count.FIRST_END: first_ends,
        Count.WAITING_STARTED: waiting_started,
    }
    return sorted(ways[promise.count](history, promise.fault))


def quantile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values, at least one, do not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def runs_again(history: History, fault: str = "") -> Iterator[float]:
    starts = _starts(history)
    for lost in _first_losses(history):
        fired = [one for one in history.faults if lost.started_at <= one.at <= lost.ended_at]
        again = [at for attempt, at in starts.get(lost.job_id, ()) if attempt > lost.attempt]
        if fired and again:
            last = max(fired, key=lambda one: one.at)
            if fault in {"", last.fault}:
                yield min(again) - last.at


def first_ends(history: History, fault: str = "") -> Iterator[float]:
    accepted = {call.job_id: call.at for call in history.calls if call.verb is Verb.SUBMIT and call.accepted}
    ends = {home.job_id: home.ended_at for home in history.homes if home.ended_at is not None}
    for one in _fired(history, fault):
        later = [(end, job_id) for job_id, end in ends.items() if end >= one.healed_at]
        if any(accepted.get(job_id, end) < one.healed_at for end, job_id in later):
            yield min(later)[0] - one.healed_at


def waiting_started(history: History, fault: str = "") -> Iterator[float]:
    deferred = {one.job_id for one in history.sightings if one.state is State.SCHEDULED}
    accepted = {call.job_id: call.at for call in history.calls if call.verb is Verb.SUBMIT and call.accepted}
    first = {job_id: min(at for _, at in starts) for job_id, starts in _starts(history).items()}
    for one in _fired(history, fault):
        for job_id, at in first.items():
            if job_id not in deferred and accepted.get(job_id, at) < one.at < at:
                yield at - one.at


def _fired(history: History, fault: str) -> list[Fired]:
    return [one for one in history.faults if fault in {"", one.fault}]


def _first_losses(history: History) -> list[AttemptRow]:
    first: dict[str, AttemptRow] = {}
    for one in history.attempts:
        if one.end is AttemptEnd.LOST and (one.job_id not in first or one.attempt < first[one.job_id].attempt):
            first[one.job_id] = one
    return list(first.values())


def _starts(history: History) -> Mapping[str, Sequence[tuple[int, float]]]:
    starts: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for line in history.handler:
        if line.event == "start":
            starts[line.job_id].append((line.attempt, line.at))
    return starts
