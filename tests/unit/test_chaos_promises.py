"""What runs under faults promise in seconds and shares is counted as it is meant, and missed promises are findings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.domain.states import AttemptEnd, State
from tests.chaos.measured.figure import Figure, Sheet
from tests.chaos.measured.windows import Windows
from tests.chaos.promises import Count, Promise, broken, counted
from tests.chaos.records import AttemptRow, Call, Fired, HandlerLine, History, HomeRow, Phase, Sighting, Verb
from tests.chaos.stages import stages

JOB, OTHER, LATER = "job", "other", "later"
KILLED, FLUSHED = "worker killed", "Redis flushed"


def accepted(job: str, at: float) -> Call:
    return Call(at, Phase.AFTER, Verb.SUBMIT, job, 202, job)


HISTORY = History(
    calls=[accepted(JOB, 0.5), accepted(OTHER, 0.5), accepted(LATER, 0.5)],
    handler=[
        HandlerLine(1.0, "start", JOB, 1),
        HandlerLine(2.5, "start", JOB, 2),
        HandlerLine(9.0, "start", JOB, 3),
        HandlerLine(4.3, "start", OTHER, 1),
        HandlerLine(8.0, "start", LATER, 1),
    ],
    faults=[Fired(2.0, 2.0, KILLED, "1"), Fired(3.0, 3.0, KILLED, "2"), Fired(4.0, 4.1, FLUSHED, "9 entries")],
    attempts=[AttemptRow(JOB, 1, AttemptEnd.LOST, 1.0, 2.2), AttemptRow(JOB, 2, AttemptEnd.LOST, 2.5, 3.1)],
    sightings=[Sighting(0.6, LATER, State.SCHEDULED, 0, 0, 0, due_at=8.0)],
    homes=[HomeRow(JOB, State.DONE, None, 3, 0, 2, 0, 9.0, 9.5)],
)


def test_a_job_runs_again_is_counted_for_its_first_rescue_alone() -> None:
    assert counted(HISTORY, Promise(Count.RUNS_AGAIN, KILLED, 1)) == [pytest.approx(0.5)]


def test_the_first_end_is_counted_from_the_healing() -> None:
    assert counted(HISTORY, Promise(Count.FIRST_END, FLUSHED, 1)) == [pytest.approx(5.4)]


def test_what_waited_counts_and_what_was_not_due_does_not() -> None:
    assert counted(HISTORY, Promise(Count.WAITING_STARTED, FLUSHED, 1)) == [pytest.approx(0.3)]


def test_a_promise_that_is_missed_or_never_tried_is_a_finding() -> None:
    assert broken(HISTORY, [Promise(Count.WAITING_STARTED, FLUSHED, 0.5)]) == []
    assert [one.rule for one in broken(HISTORY, [Promise(Count.WAITING_STARTED, FLUSHED, 0.2)])] == ["promise"]
    quiet = replace(HISTORY, faults=[])
    assert [one.rule for one in broken(quiet, [Promise(Count.RUNS_AGAIN, KILLED, 1)])] == ["no bite"]


def test_a_throughput_is_held_against_the_windows_without_the_fault() -> None:
    windows = Windows(calm=[100, 300], hurt=[150])
    assert windows.figure("throughput", 75).kept
    assert not windows.figure("throughput", 76).kept


def test_a_figure_beyond_its_limit_is_a_finding() -> None:
    sheet = Sheet(figures=[Figure("kept", 1, 1), Figure("missed", 2, 1)])
    assert [one.detail.split(":")[0] for one in sheet.all_findings()] == ["missed"]


def test_every_run_is_carried_out_once_and_what_measures_alone() -> None:
    first, *others = stages([])
    assert len(first) == 1
    names = [name for lanes in (first, *others) for lane in lanes for name in lane.names]
    assert len(names) == len(set(names))
    assert stages(["N1"])[0][0].names == ["N1"]
