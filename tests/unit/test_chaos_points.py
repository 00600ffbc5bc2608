"""The judge of the hits at failpoints is only worth what it finds: what it must find is planted here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from app.domain.states import State
from app.failpoints import Action, Point
from tests.chaos.points_cases import CASES, Case, Deed
from tests.chaos.points_hit import Hit
from tests.chaos.points_judge import judge, matrix, recovered_seconds
from tests.chaos.records import HandlerLine, History, HomeRow, Part

JOB, KEY, AT = "job", "sink-key", 1_000.0


def hit_at(point: Point, action: Action = Action.KILL) -> Hit:
    [case] = [case for case in CASES if case.point is point]
    return Hit(case, action, "redis", JOB, 4711, AT, AT + 1)


def home(state: State = State.DONE, crashes: int = 1) -> HomeRow:
    return HomeRow(JOB, state, None, 2, 0, crashes, 0, AT, AT + 1)


def history(*homes: HomeRow, calls: int = 1, filings: int = 1) -> History:
    performed = [HandlerLine(AT, "perform", JOB, 1, KEY)]
    return History(homes=homes, handler=performed, sink_calls={KEY: calls}, filings={JOB: filings})


def rules(hit: Hit, told: History) -> Sequence[str]:
    return [finding.rule for finding in judge([hit], told)]


def test_a_hit_that_ended_as_it_should_is_no_finding() -> None:
    assert rules(hit_at(Point.EFFECT_RECORDED), history(home())) == []
    assert rules(hit_at(Point.EFFECT_CALLED), history(home(), calls=2)) == []
    assert rules(hit_at(Point.CLAIM_DELIVERED), history(home(crashes=0))) == []


@pytest.mark.parametrize(
    ("point", "told", "rule"),
    [
        (Point.CLAIM_DELIVERED, history(home(crashes=1)), "charged"),
        (Point.CLAIM_COMMITTED, history(home(crashes=0)), "charged"),
        (Point.EFFECT_RECORDED, history(home(), calls=2), "calls"),
        (Point.EFFECT_CALLED, history(home(), calls=1), "calls"),
        (Point.EFFECT_CALLED, history(home(), calls=2, filings=2), "duplicate"),
        (Point.EFFECT_CALLED, history(home(), calls=2, filings=0), "duplicate"),
        (Point.FINISH_RETURNED, history(home(State.DEAD)), "wrong ending"),
        (Point.FINISH_RETURNED, history(), "homes"),
        (Point.FINISH_RETURNED, history(home(), home(State.DEAD)), "homes"),
    ],
)
def test_what_must_not_be_is_found(point: Point, told: History, rule: str) -> None:
    assert rules(hit_at(point), told) == [rule]


def test_an_error_is_charged_to_no_job_but_that_of_a_worker_that_was_killed_for_it() -> None:
    assert rules(hit_at(Point.START_BEFORE, Action.RAISE), history(home(crashes=1))) == ["charged"]
    assert rules(hit_at(Point.RESCUE_SEEN, Action.RAISE), history(home(crashes=1))) == []


def test_there_is_one_case_for_every_point() -> None:
    assert sorted(case.point for case in CASES) == sorted(Point)
    assert all((case.part is Part.PERMANENT) == (case.deed is Deed.REPLAY) for case in CASES)


def test_recovery_is_up_to_the_next_start_and_not_the_one_that_was_hit() -> None:
    hit = hit_at(Point.EFFECT_BEFORE_INTENT)
    assert recovered_seconds(hit, [AT - 0.1, AT + 0.004, AT + 0.5, AT + 0.9]) == pytest.approx(0.5)
    assert recovered_seconds(hit, [AT - 0.1]) == pytest.approx(1.0)


def test_the_matrix_has_a_row_for_every_point_and_shows_what_was_not_tried() -> None:
    hit = hit_at(Point.EFFECT_CALLED)
    second = replace(hit, job_id="another", ended_at=AT + 3)
    rows = matrix([hit, second], history(home(), calls=2))
    [shown] = [row for row in rows if row.split()[0] == Point.EFFECT_CALLED]
    assert len(rows) == 1 + len(Point)
    assert shown.split() == ["effect.called", "2:", "3.00", "3.00", "-", "-", "-", "-", "-", "0", "2", "1"]


def test_a_transport_without_entries_is_not_hit_where_there_are_none() -> None:
    tried = {case.point for case in CASES if case.can(Action.KILL, "pg")}
    assert set(Point) - tried == {
        Point.RELAY_BEFORE_PUBLISH,
        Point.RELAY_AFTER_PUBLISH,
        Point.CLAIM_DELIVERED,
        Point.ACK_DONE,
    }
    assert Case(Point.ACK_DONE, frozenset({0}), redis_only=True).can(Action.KILL, "redis")
