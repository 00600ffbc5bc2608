"""What must be true of a run, decided from its records alone. Pure: no clock, no I/O.

| rule            | broken when                                                                                    |
|-----------------|------------------------------------------------------------------------------------------------|
| lost            | a job that was answered with 2xx has not ended                                                 |
| stuck           | any job has not ended within the time after the last fault healed                              |
| homes           | a job owns no row or two                                                                       |
| unexpected      | a job nobody asked for, or two for one key, or two answers for one key                         |
| wrong ending    | a job ended otherwise than its part and its callers provide                                    |
| duplicate       | an effect counted twice, called unowned, or performed by an attempt after it was on record     |
| illegal path    | a job was seen to move against the state table, or a counter to fall                           |
| foreign result  | a job is done with a result that another attempt returned than the one that holds its row      |
| overlap         | two attempts of one job held leases at one moment, or one attempt number was used twice        |
| clock order     | created before it was asked for, an attempt started before that or ended before it started     |
| early           | an attempt started before the job was due, by the record or by what its client asked for       |
| over budget     | more retries or crashes than there are, or dead before they were used up                       |
| miscounted      | the counters of a job are not those of its ended attempts                                      |
| reborn          | an attempt started after the one that was cancelled                                            |
| hung            | a call took longer than 10 s, answered or cut                                                  |
| ill answered    | a call was answered with neither success, nor 409 to a cancel, nor when to try again           |
| replay          | a selected dead letter was replayed never or twice, or one that was not selected at all        |
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TypeVar

from app.domain.states import TERMINAL, AttemptEnd, Reason, State
from tests.chaos.records import Finding, History, HomeRow, JobRow, Part, Phase, Sighting, Verb

T = TypeVar("T")

WAITING_OR_RUNNING = frozenset({State.QUEUED, State.RETRYING, State.LEASED, State.RUNNING})
ENDED = frozenset(TERMINAL)

# What may be seen later of a job that was seen so: the closure of the state table, as a sample misses moves.
LATER: Mapping[State, frozenset[State]] = {
    State.SCHEDULED: WAITING_OR_RUNNING | ENDED | {State.SCHEDULED},
    **dict.fromkeys(WAITING_OR_RUNNING, WAITING_OR_RUNNING | ENDED),
    State.DEAD: frozenset({State.DEAD}),
    State.DONE: frozenset({State.DONE}),
    State.CANCELLED: frozenset({State.CANCELLED}),
}
CANCELLED, CANCEL_REFUSED = 200, 409
AGAIN = frozenset({429, 503})
CALL_SECONDS_MAX = 10.0
RACED = "cancels race rescues"

AFTER_A_REPLAY = WAITING_OR_RUNNING | ENDED

ENDING: Mapping[Part, State] = dict.fromkeys(Part, State.DONE) | {Part.PERMANENT: State.DEAD}
CHARGED_RETRY = frozenset({AttemptEnd.FAILED, AttemptEnd.TIMED_OUT})


def check(history: History) -> list[Finding]:
    """Everything that is wrong with the run, rule by rule."""
    return [finding for rule in RULES for finding in rule(history)]


def bites(history: History) -> Counter[str]:
    """What the faults of a run did: each by its name, and the consequences seen."""
    cancels = [call for call in history.calls if call.verb is Verb.CANCEL and call.phase is Phase.AFTER]
    ends = Counter(one.end for one in history.attempts)
    return Counter(
        {
            **Counter(one.fault for one in history.faults),
            "rescued": ends[AttemptEnd.LOST],
            "rescue races": sum(len(one.hit.split()) - 1 for one in history.faults if one.fault == RACED),
            "released": ends[AttemptEnd.RELEASED],
            "late refused": history.late_refused,
            "clocks seen": len({line.shift for line in history.handler}),
            "cut": sum(call.phase is Phase.CUT for call in history.calls),
            "cancelled": sum(call.status == CANCELLED for call in cancels),
            "cancel refused": sum(call.status == CANCEL_REFUSED for call in cancels),
        }
    )


def toothless(history: History, wanted: Mapping[str, int]) -> list[Finding]:
    """A run whose faults did not bite proves nothing: fewer fired, or fewer consequences seen, than it is for."""
    seen = bites(history)
    return [
        Finding("no bite", "", f"{name}: {seen[name]} of {count}")
        for name, count in wanted.items()
        if seen[name] < count
    ]


def lost(history: History) -> Iterator[Finding]:
    ended = {home.job_id for home in history.homes if home.state in TERMINAL}
    accepted = {call.job_id for call in history.calls if call.verb is Verb.SUBMIT and call.accepted}
    for job_id in sorted(accepted - ended):
        yield Finding("lost", job_id, "answered with 2xx, and has not ended")


def stuck(history: History) -> Iterator[Finding]:
    for home in history.homes:
        if home.state not in TERMINAL:
            yield Finding("stuck", home.job_id, f"still {home.state} in attempt {home.attempt}")


def homes(history: History) -> Iterator[Finding]:
    owned = Counter(home.job_id for home in history.homes)
    known = {job.job_id for job in history.jobs}
    for job_id in sorted(known | owned.keys()):
        if owned[job_id] != 1 or job_id not in known:
            yield Finding("homes", job_id, f"{owned[job_id]} homes" if job_id in known else "a home without its job")


def unexpected(history: History) -> Iterator[Finding]:
    attempted = {call.key for call in history.calls if call.verb is Verb.SUBMIT and call.phase is Phase.BEFORE}
    jobs_of: dict[str, set[str]] = defaultdict(set)
    for job in history.jobs:
        jobs_of[job.key].add(job.job_id)
        if job.key not in attempted:
            yield Finding("unexpected", job.job_id, f"nobody asked for {job.key}")
    for call in history.calls:
        if call.verb is Verb.SUBMIT and call.accepted:
            jobs_of[call.key].add(call.job_id)
    for key, ids in jobs_of.items():
        if len(ids) > 1:
            yield Finding("unexpected", min(ids), f"{len(ids)} jobs for {key}")


def wrong_ending(history: History) -> Iterator[Finding]:
    jobs = {job.job_id: job for job in history.jobs}
    cancels: dict[str, set[int]] = defaultdict(set)
    for call in history.calls:
        if call.verb is Verb.CANCEL:
            cancels[call.job_id].add(call.status if call.phase is Phase.AFTER else 0)
    for home in history.homes:
        job = jobs.get(home.job_id)
        if job is not None and home.state in TERMINAL and not _may_end_so(job, home, cancels[home.job_id]):
            yield Finding("wrong ending", home.job_id, f"{job.part} ended {home.state} {home.reason or ''}")


def _may_end_so(job: JobRow, home: HomeRow, cancels: set[int]) -> bool:
    """`cancels` are the statuses the job's cancels were answered with; 0 stands for one without an answer."""
    if home.state is State.CANCELLED:
        return bool(cancels & {0, CANCELLED})
    if CANCELLED in cancels:
        return False
    reason = Reason.PERMANENT_ERROR if job.part is Part.PERMANENT else None
    return home.state is ENDING[job.part] and home.reason == reason


def duplicate(history: History) -> Iterator[Finding]:
    for job_id, count in history.filings.items():
        if count > 1:
            yield Finding("duplicate", job_id, f"filed {count} times")
    effects = {effect.job_id: effect for effect in history.effects}
    job_of = {line.sink_key: line.job_id for line in history.handler if line.event == "perform"}
    for key, count in history.sink_calls.items():
        effect = effects.get(job_of.get(key, ""))
        owned = 0 if effect is None else effect.calls
        if count > owned:
            yield Finding("duplicate", job_of.get(key, ""), f"called {count} times, {owned} owned up to")
    for line in history.handler:
        effect = effects.get(line.job_id)
        if line.event == "perform" and effect and effect.recorded and line.attempt > effect.attempt:
            detail = f"performed by attempt {line.attempt}, on record since attempt {effect.attempt}"
            yield Finding("duplicate", line.job_id, detail)


def illegal_path(history: History) -> Iterator[Finding]:
    replayed = set(history.replays)
    for job_id, seen in _by_job(history.sightings, lambda one: one.job_id).items():
        for before, after in pairwise(sorted(seen, key=lambda one: one.at)):
            again = before.state is State.DEAD and job_id in replayed
            if after.state not in (AFTER_A_REPLAY if again else LATER[before.state]):
                yield Finding("illegal path", job_id, f"{before.state} and later {after.state}")
            elif (fell := _fell(before, after, replayed=again)) is not None:
                yield Finding("illegal path", job_id, fell)


def _fell(before: Sighting, after: Sighting, *, replayed: bool) -> str | None:
    if after.attempt < before.attempt:
        return f"attempt {before.attempt} and later {after.attempt}"
    if not replayed and (after.retries < before.retries or after.crashes < before.crashes):
        return "a counter fell"
    return None


def foreign_result(history: History) -> Iterator[Finding]:
    for home in history.homes:
        if home.result_attempt not in {None, home.attempt}:
            yield Finding("foreign result", home.job_id, f"of attempt {home.result_attempt}, done by {home.attempt}")


def overlap(history: History) -> Iterator[Finding]:
    held = [(one.job_id, one.attempt, one.started_at, one.ended_at) for one in history.attempts]
    held += [
        (home.job_id, home.attempt, home.attempt_started_at, home.ended_at)
        for home in history.homes
        if home.state is State.DONE and home.attempt_started_at is not None and home.ended_at is not None
    ]
    for job_id, leases in _by_job(held, lambda one: one[0]).items():
        for (_, one, _, ended), (_, other, started, _) in pairwise(sorted(leases, key=lambda lease: lease[1])):
            if one == other:
                yield Finding("overlap", job_id, f"attempt {one} twice")
            elif started < ended:
                yield Finding("overlap", job_id, f"attempt {other} began {ended - started:.3f} s before {one} ended")


def early(history: History) -> Iterator[Finding]:
    asked = _first_asked(history)
    due = {(job.job_id, 1): asked.get(job.key, 0.0) + job.delay_seconds for job in history.jobs}
    for one in history.sightings:
        if one.state in {State.SCHEDULED, State.RETRYING} and one.due_at is not None:
            due[one.job_id, one.attempt + 1] = max(one.due_at, due.get((one.job_id, one.attempt + 1), 0.0))
    for line in history.handler:
        due_at = due.get((line.job_id, line.attempt))
        if line.event == "start" and due_at is not None and line.at < due_at:
            yield Finding("early", line.job_id, f"attempt {line.attempt} started {due_at - line.at:.3f} s early")


def clock_order(history: History) -> Iterator[Finding]:
    asked = _first_asked(history)
    begun = {job.job_id: [asked.get(job.key), job.created_at] for job in history.jobs}
    spans = [(one.job_id, one.started_at, one.ended_at) for one in history.attempts]
    spans += [(home.job_id, home.attempt_started_at, home.ended_at) for home in history.homes]
    for job_id, started, ended in spans:
        known = [at for at in (*begun.get(job_id, []), started, ended) if at is not None]
        if known != sorted(known):
            yield Finding("clock order", job_id, f"asked for, created, started, ended: {known}")


def _first_asked(history: History) -> dict[str, float]:
    """When a client first asked for the job of each key, by the client's clock."""
    asked: dict[str, float] = {}
    for call in history.calls:
        if call.verb is Verb.SUBMIT and call.phase is Phase.BEFORE:
            asked.setdefault(call.key, call.at)
    return asked


def over_budget(history: History) -> Iterator[Finding]:
    jobs = {job.job_id: job for job in history.jobs}
    for home in history.homes:
        job = jobs.get(home.job_id)
        if job is None:
            continue
        if home.retries > job.max_retries or home.crashes > history.max_crashes:
            detail = f"{home.retries} of {job.max_retries} retries, {home.crashes} of {history.max_crashes} crashes"
            yield Finding("over budget", home.job_id, detail)
        if home.reason == Reason.RETRIES_EXHAUSTED and home.retries < job.max_retries:
            yield Finding("over budget", home.job_id, f"dead after {home.retries} of {job.max_retries} retries")
        if home.reason == Reason.CRASHES_EXHAUSTED and home.crashes < history.max_crashes:
            yield Finding("over budget", home.job_id, f"dead after {home.crashes} of {history.max_crashes} crashes")


def miscounted(history: History) -> Iterator[Finding]:
    attempts = _by_job(history.attempts, lambda one: one.job_id)
    for home in history.homes:
        if home.job_id in history.replays:
            continue
        ends = Counter(one.end for one in attempts.get(home.job_id, []))
        failed = sum(ends[end] for end in CHARGED_RETRY) - (home.state is State.DEAD and home.reason in _LAST_FAILED)
        seen = (failed, ends[AttemptEnd.LOST], ends[AttemptEnd.RELEASED])
        counted = (home.retries, home.crashes, home.releases)
        if seen != counted:
            detail = f"retries, crashes, releases are {counted}, ended attempts say {seen}"
            yield Finding("miscounted", home.job_id, detail)


_LAST_FAILED = {reason.value for reason in Reason} - {Reason.CRASHES_EXHAUSTED, Reason.EXPIRED, Reason.UNKNOWN_KIND}


def reborn(history: History) -> Iterator[Finding]:
    cancelled = {home.job_id: home.attempt for home in history.homes if home.state is State.CANCELLED}
    for line in history.handler:
        if line.event == "start" and line.attempt > cancelled.get(line.job_id, line.attempt):
            detail = f"attempt {line.attempt} started, cancelled in attempt {cancelled[line.job_id]}"
            yield Finding("reborn", line.job_id, detail)


def hung(history: History) -> Iterator[Finding]:
    begun: dict[tuple[Verb, str], float] = {}
    for call in history.calls:
        if call.phase is Phase.BEFORE:
            begun[call.verb, call.key] = call.at
        elif (took := call.at - begun.get((call.verb, call.key), call.at)) > CALL_SECONDS_MAX:
            yield Finding("hung", call.job_id, f"{call.verb} {call.key} took {took:.1f} s")


def ill_answered(history: History) -> Iterator[Finding]:
    for call in history.calls:
        refused = call.verb is Verb.CANCEL and call.status == CANCEL_REFUSED
        again = call.status in AGAIN and call.retry_after
        if call.phase is Phase.AFTER and not (200 <= call.status < 300 or refused or again):
            yield Finding("ill answered", call.job_id, f"{call.verb} {call.key}: {call.status}")


def replay(history: History) -> Iterator[Finding]:
    counted = Counter(history.replays)
    for job_id in sorted(history.to_replay | counted.keys()):
        if counted[job_id] != (job_id in history.to_replay):
            yield Finding("replay", job_id, f"replayed {counted[job_id]} times")


RULES: tuple[Callable[[History], Iterable[Finding]], ...] = (
    lost,
    stuck,
    homes,
    unexpected,
    wrong_ending,
    duplicate,
    illegal_path,
    foreign_result,
    overlap,
    early,
    clock_order,
    over_budget,
    miscounted,
    reborn,
    hung,
    ill_answered,
    replay,
)


def longest_stall(history: History) -> float:
    """The longest time in which no job ended, from the first end to the last."""
    ends = sorted(home.ended_at for home in history.homes if home.ended_at is not None)
    return max((after - before for before, after in pairwise(ends)), default=0.0)


def _by_job(rows: Iterable[T], job_of: Callable[[T], str]) -> dict[str, list[T]]:
    grouped: dict[str, list[T]] = defaultdict(list)
    for row in rows:
        grouped[job_of(row)].append(row)
    return grouped
