"""The checker of chaos runs catches what it is for: each planted fault is found, and by its own rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from app.domain.states import AttemptEnd, State
from tests.chaos.checker import check, longest_stall, toothless
from tests.chaos.plan import Shape, plan
from tests.chaos.promises import runs_again
from tests.chaos.records import (
    AttemptRow,
    Call,
    EffectRow,
    Fired,
    HandlerLine,
    History,
    HomeRow,
    JobRow,
    Part,
    Phase,
    Sighting,
    Verb,
)

OK, FLAKY, PERMANENT, EFFECT, CANCELLED = "ok", "flaky", "permanent", "effect", "cancelled"
PARTS = {OK: Part.OK, FLAKY: Part.FLAKY, PERMANENT: Part.PERMANENT, EFFECT: Part.EFFECT, CANCELLED: Part.SLOW}
KEY = "derived"
STARTS = [
    HandlerLine(2.0, "start", OK, 1),
    HandlerLine(2.0, "start", FLAKY, 1),
    HandlerLine(2.6, "start", FLAKY, 2),
    HandlerLine(2.0, "start", EFFECT, 1),
    HandlerLine(2.1, "perform", EFFECT, 1, KEY),
    HandlerLine(2.7, "start", EFFECT, 2),
    HandlerLine(2.8, "perform", EFFECT, 2, KEY),
    HandlerLine(2.0, "start", CANCELLED, 1),
]


def submitted(name: str) -> list[Call]:
    """A submit that was cut off and then answered."""
    return [
        Call(1.0, Phase.BEFORE, Verb.SUBMIT, name),
        Call(1.1, Phase.CUT, Verb.SUBMIT, name),
        Call(1.2, Phase.BEFORE, Verb.SUBMIT, name),
        Call(1.3, Phase.AFTER, Verb.SUBMIT, name, 200, name),
    ]


def home(name: str, state: State, **fields: object) -> HomeRow:
    plain = HomeRow(name, state, None, 1, 0, 0, 0, attempt_started_at=2.0, ended_at=3.0)
    return replace(plain, **fields)


def sighting(name: str, at: float, state: State, attempt: int, **fields: float) -> Sighting:
    return replace(Sighting(at, name, state, attempt, 0, 0), **fields)


def sound() -> History:
    """A run in which everything went as it should: a retry, a rescue, an effect, a death and a cancel."""
    return History(
        calls=[
            *(call for name in PARTS for call in submitted(name)),
            Call(2.4, Phase.BEFORE, Verb.CANCEL, CANCELLED, job_id=CANCELLED),
            Call(2.5, Phase.AFTER, Verb.CANCEL, CANCELLED, 200, CANCELLED),
        ],
        handler=STARTS,
        faults=[Fired(2.2, 2.3, "worker killed", "1")],
        sightings=[
            sighting(FLAKY, 1.5, State.QUEUED, 0),
            sighting(FLAKY, 2.2, State.RETRYING, 1, retries=1, due_at=2.5),
            sighting(FLAKY, 3.1, State.DONE, 2, retries=1),
            sighting(PERMANENT, 1.5, State.QUEUED, 0),
            sighting(PERMANENT, 3.1, State.DEAD, 1),
        ],
        jobs=[JobRow(name, name, part, created_at=1.25) for name, part in PARTS.items()],
        homes=[
            home(OK, State.DONE),
            home(FLAKY, State.DONE, attempt=2, retries=1, attempt_started_at=2.6),
            home(PERMANENT, State.DEAD, reason="permanent_error"),
            home(EFFECT, State.DONE, attempt=2, crashes=1, attempt_started_at=2.7),
            home(CANCELLED, State.CANCELLED, reason="a race"),
        ],
        attempts=[
            AttemptRow(FLAKY, 1, AttemptEnd.FAILED, 2.0, 2.1),
            AttemptRow(PERMANENT, 1, AttemptEnd.FAILED, 2.0, 3.0),
            AttemptRow(EFFECT, 1, AttemptEnd.LOST, 2.0, 2.4),
            AttemptRow(CANCELLED, 1, AttemptEnd.CANCELLED, 2.0, 2.5),
        ],
        effects=[EffectRow(EFFECT, attempt=2, calls=2, recorded=True)],
        sink_calls={KEY: 2},
        filings={EFFECT: 1},
    )


def homes_with(history: History, name: str, **fields: object) -> History:
    """The same, but for this home."""
    changed = [replace(one, **fields) if one.job_id == name else one for one in history.homes]
    return replace(history, homes=changed)


def acknowledged_before_the_commit(run: History) -> History:
    return replace(run, homes=[one for one in run.homes if one.job_id != OK])


def left_in_the_outbox(run: History) -> History:
    return homes_with(run, OK, state=State.QUEUED)


def finished_while_it_was_cancelled(run: History) -> History:
    return replace(run, homes=[*run.homes, home(CANCELLED, State.DONE)])


def key_not_honoured(run: History) -> History:
    return replace(run, jobs=[*run.jobs, JobRow("twin", OK, Part.OK)], homes=[*run.homes, home("twin", State.DONE)])


def job_out_of_nowhere(run: History) -> History:
    return replace(run, jobs=[*run.jobs, JobRow("new", "new", Part.OK)], homes=[*run.homes, home("new", State.DONE)])


def another_answer_for_the_same_key(run: History) -> History:
    return replace(run, calls=[*run.calls, Call(1.5, Phase.AFTER, Verb.SUBMIT, OK, 202, "other")])


def dead_that_should_be_done(run: History) -> History:
    return homes_with(run, OK, state=State.DEAD, reason="effect_unknown")


def cancelled_by_nobody(run: History) -> History:
    return homes_with(run, OK, state=State.CANCELLED)


def done_though_the_cancel_was_confirmed(run: History) -> History:
    return homes_with(run, CANCELLED, state=State.DONE, reason=None)


def derived_key_that_changes(run: History) -> History:
    return replace(run, filings={EFFECT: 2})


def effect_called_behind_the_record(run: History) -> History:
    return replace(run, sink_calls={KEY: 3})


def effect_outside_its_record(run: History) -> History:
    return replace(run, effects=[EffectRow(EFFECT, attempt=1, calls=2, recorded=True)])


def late_finish_not_fenced(run: History) -> History:
    return replace(run, sightings=[*run.sightings, sighting(FLAKY, 3.2, State.QUEUED, 2, retries=1)])


def late_result_kept_under_a_younger_attempt(run: History) -> History:
    return homes_with(run, EFFECT, result_attempt=1)


def dead_and_back_without_a_replay(run: History) -> History:
    return replace(run, sightings=[*run.sightings, sighting(PERMANENT, 3.2, State.QUEUED, 1)])


def attempt_number_given_back(run: History) -> History:
    return replace(run, sightings=[*run.sightings, sighting(PERMANENT, 3.2, State.DEAD, 0)])


def counter_that_fell(run: History) -> History:
    return replace(run, sightings=[*run.sightings, sighting(FLAKY, 3.2, State.DONE, 2)])


def rescued_while_it_ran(run: History) -> History:
    return homes_with(run, EFFECT, attempt_started_at=2.2)


def attempt_used_twice(run: History) -> History:
    return replace(run, attempts=[*run.attempts, AttemptRow(EFFECT, 2, AttemptEnd.LOST, 2.5, 2.6)])


def local_clock_for_what_is_due(run: History) -> History:
    return replace(run, handler=[*run.handler, HandlerLine(2.4, "start", FLAKY, 2)])


def local_clock_for_what_ended(run: History) -> History:
    return homes_with(run, OK, ended_at=1.9)


def local_clock_for_what_was_created(run: History) -> History:
    return replace(run, jobs=[replace(job, created_at=2.05) for job in run.jobs])


def slow_clock_of_the_api_for_what_was_created(run: History) -> History:
    return replace(run, jobs=[replace(job, created_at=0.9) for job in run.jobs])


def slow_clock_of_the_api_for_a_delay(run: History) -> History:
    return replace(run, jobs=[replace(job, delay_seconds=1.1) for job in run.jobs])


def dead_at_the_first_crash(run: History) -> History:
    return homes_with(run, EFFECT, state=State.DEAD, reason="crashes_exhausted")


def dead_before_the_last_retry(run: History) -> History:
    return homes_with(run, FLAKY, state=State.DEAD, reason="retries_exhausted")


def one_retry_too_many(run: History) -> History:
    return homes_with(run, FLAKY, retries=3)


def crash_charged_to_the_retries(run: History) -> History:
    return homes_with(run, EFFECT, retries=1, crashes=0)


def deploy_that_charged_a_crash(run: History) -> History:
    return homes_with(run, OK, crashes=1)


def started_after_its_cancel(run: History) -> History:
    return replace(run, handler=[*run.handler, HandlerLine(2.9, "start", CANCELLED, 2)])


def call_that_hung(run: History) -> History:
    begun = Call(1.5, Phase.BEFORE, Verb.SUBMIT, OK)
    return replace(run, calls=[*run.calls, begun, Call(11.6, Phase.CUT, Verb.SUBMIT, OK)])


def answered_with_a_500(run: History) -> History:
    return replace(run, calls=[*run.calls, Call(1.5, Phase.AFTER, Verb.SUBMIT, OK, 500)])


def away_without_saying_when_to_try_again(run: History) -> History:
    return replace(run, calls=[*run.calls, Call(1.5, Phase.AFTER, Verb.SUBMIT, OK, 503)])


def replay_that_missed_one(run: History) -> History:
    return replace(run, to_replay=frozenset({PERMANENT}))


def replayed_twice_under_one_id(run: History) -> History:
    return replace(run, to_replay=frozenset({PERMANENT}), replays=[PERMANENT, PERMANENT])


PLANTED: dict[Callable[[History], History], str] = {
    acknowledged_before_the_commit: "lost",
    left_in_the_outbox: "stuck",
    finished_while_it_was_cancelled: "homes",
    key_not_honoured: "unexpected",
    job_out_of_nowhere: "unexpected",
    another_answer_for_the_same_key: "unexpected",
    dead_that_should_be_done: "wrong ending",
    cancelled_by_nobody: "wrong ending",
    done_though_the_cancel_was_confirmed: "wrong ending",
    derived_key_that_changes: "duplicate",
    effect_called_behind_the_record: "duplicate",
    effect_outside_its_record: "duplicate",
    late_finish_not_fenced: "illegal path",
    late_result_kept_under_a_younger_attempt: "foreign result",
    dead_and_back_without_a_replay: "illegal path",
    attempt_number_given_back: "illegal path",
    counter_that_fell: "illegal path",
    rescued_while_it_ran: "overlap",
    attempt_used_twice: "overlap",
    local_clock_for_what_is_due: "early",
    local_clock_for_what_ended: "clock order",
    local_clock_for_what_was_created: "clock order",
    slow_clock_of_the_api_for_what_was_created: "clock order",
    slow_clock_of_the_api_for_a_delay: "early",
    dead_at_the_first_crash: "over budget",
    dead_before_the_last_retry: "over budget",
    one_retry_too_many: "over budget",
    crash_charged_to_the_retries: "miscounted",
    deploy_that_charged_a_crash: "miscounted",
    started_after_its_cancel: "reborn",
    call_that_hung: "hung",
    answered_with_a_500: "ill answered",
    away_without_saying_when_to_try_again: "ill answered",
    replay_that_missed_one: "replay",
    replayed_twice_under_one_id: "replay",
}


def test_a_sound_run_has_no_finding() -> None:
    assert check(sound()) == []


@pytest.mark.parametrize(("plant", "rule"), PLANTED.items(), ids=[plant.__name__ for plant in PLANTED])
def test_a_planted_fault_is_caught_by_its_rule(plant: Callable[[History], History], rule: str) -> None:
    assert rule in {finding.rule for finding in check(plant(sound()))}


def test_a_replay_may_bring_a_dead_job_back_once() -> None:
    run = dead_and_back_without_a_replay(sound())
    assert check(replace(run, to_replay=frozenset({PERMANENT}), replays=[PERMANENT])) == []


def test_a_run_whose_faults_did_not_bite_is_invalid() -> None:
    assert toothless(sound(), {"worker killed": 1, "rescued": 1, "cut": 5, "cancelled": 1}) == []
    assert [one.rule for one in toothless(sound(), {"worker killed": 2})] == ["no bite"]
    assert [one.rule for one in toothless(sound(), {"late refused": 1})] == ["no bite"]


def test_recovery_is_counted_from_the_fault_to_the_next_start() -> None:
    assert list(runs_again(sound())) == [pytest.approx(0.5)]


def test_a_stall_is_the_longest_time_in_which_nothing_ended() -> None:
    assert longest_stall(homes_with(sound(), OK, ended_at=1.0)) == 2.0


def test_a_seed_gives_the_same_plan_again_and_another_seed_another() -> None:
    shape = Shape("N0", "", jobs=50, seconds=5, faults={"a": 3, "b": 2}, cancel_share=0.5)
    assert plan(shape, 7) == plan(shape, 7)
    assert plan(shape, 7) != plan(shape, 8)
    assert sorted(fault.name for fault in plan(shape, 7).faults) == ["a", "a", "a", "b", "b"]
