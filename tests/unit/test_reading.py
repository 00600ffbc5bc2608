"""The pure side of reading: cursors, instants, preferences, and an explanation for every state and reason."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api.waiting import wait_seconds
from app.domain.cursor import dead_cursor, dead_position, job_cursor, job_position
from app.domain.errors import Refused
from app.domain.explain import Clocks, Fleet, Holder, Surroundings, Who, explain
from app.domain.filters import DeadFilter, JobFilter
from app.domain.instants import rfc3339, uuid_floor
from app.domain.states import Reason, State
from app.domain.views import JobView, job_json

NOON = datetime(2031, 1, 1, 12, tzinfo=UTC)
ID = UUID("01a22875-5069-7c7f-b0f5-a9eee410d2ea")
CLOCKS = Clocks(3, 15, 5, 604_800, broker=True)
FLEET = Fleet(NOON, workers=2, knowing=2, slots=200, relays=1, leader=True, broker_ok=True)
JOB = JobView(
    id=ID,
    kind="a.kind",
    queue="default",
    priority=5,
    state=State.QUEUED,
    reason=None,
    attempt=0,
    retries=0,
    max_retries=2,
    crashes=0,
    releases=0,
    timeout_seconds=60,
    metadata=None,
    error=None,
    progress=None,
    fingerprint=None,
    created_at=NOON,
    due_at=NOON,
    deadline=None,
    started_at=None,
    finished_at=None,
)

instants = st.datetimes(datetime(1970, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  # in UTC


@given(st.uuids(), instants)
def test_a_cursor_comes_back_as_the_position_it_was_made_of(job_id: UUID, at: datetime) -> None:
    filters, dead = JobFilter(state=State.DONE, since=at), DeadFilter(reason=Reason.EXPIRED, until=at)
    assert job_position(filters, job_cursor(filters, job_id)) == job_id
    assert dead_position(dead, dead_cursor(dead, at, job_id)) == (at, job_id)


@given(st.text(max_size=120))
def test_any_other_text_is_refused_as_a_cursor(text: str) -> None:
    with pytest.raises(Refused) as refused:
        job_position(JobFilter(), text)
    assert (refused.value.code, refused.value.status) == ("invalid-cursor", 422)


def test_a_cursor_is_bound_to_every_filter() -> None:
    cursor = job_cursor(JobFilter(), ID)
    for other in (JobFilter(state=State.DEAD), JobFilter(kind="a"), JobFilter(queue="a"), JobFilter(since=NOON)):
        with pytest.raises(Refused):
            job_position(other, cursor)


def test_one_instant_written_in_two_zones_is_one_filter() -> None:
    abroad = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert job_position(JobFilter(since=abroad), job_cursor(JobFilter(since=NOON), ID)) == ID


@given(instants)
def test_the_floor_of_an_instant_is_below_every_id_of_its_millisecond(at: datetime) -> None:
    floor = uuid_floor(at)
    milliseconds = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert floor.int >> 80 == milliseconds
    assert floor <= UUID(int=(milliseconds << 80) | (7 << 76))


def test_instants_are_written_in_utc_with_a_zone() -> None:
    assert rfc3339(NOON.astimezone(timezone(timedelta(hours=-6)))) == "2031-01-01T12:00:00.000000Z"


@pytest.mark.parametrize(
    ("preferences", "seconds"),
    [
        ([], 0),
        (["wait=10"], 10),
        (["respond-async, WAIT = 10"], 10),
        (["respond-async", 'wait="7"; foo'], 7),
        (["wait=600"], 60),
        (["wait=0"], 0),
        (["wait=-1", "wait=x", "wait=1.5", "waiting=3", "wait", "wait=", "wait=9999999999"], 0),
        (["wait=3, wait=9"], 3),
    ],
)
def test_the_wait_of_prefer_is_read_as_rfc_7240_says(preferences: list[str], seconds: int) -> None:
    assert wait_seconds(preferences) == seconds


def test_every_dead_reason_has_an_explanation_that_names_an_operator() -> None:
    for reason in Reason:
        dead = JOB._replace(state=State.DEAD, reason=reason, error='{"type":"ValueError","message":"no"}')
        found = explain(dead, Surroundings(FLEET, CLOCKS))
        assert (found.reason, found.who_acts) == (reason, Who.OPERATOR)
        assert "ValueError: no" in found.summary


def test_every_state_has_an_explanation() -> None:
    holder = Holder(ID, "host", 7, gone=False, left_cause=None, silent_seconds=0.1, run_until=NOON)
    for state in State:
        job = JOB._replace(state=state, reason="expired" if state is State.DEAD else None)
        found = explain(job, Surroundings(FLEET, CLOCKS, holder=holder))
        assert found.state is state
        assert found.reason
        assert found.summary.endswith(".")


@pytest.mark.parametrize(
    ("around", "reason"),
    [
        (Surroundings(replace(FLEET, workers=0, knowing=0, slots=0), CLOCKS), "no_worker"),
        (Surroundings(replace(FLEET, knowing=0), CLOCKS), "kind_unknown"),
        (Surroundings(FLEET, CLOCKS, solo=True), "last_start"),
        (Surroundings(replace(FLEET, slots=0), CLOCKS), "workers_draining"),
        (Surroundings(replace(FLEET, broker_ok=False), CLOCKS), "broker_away"),
        (Surroundings(replace(FLEET, broker_ok=False), replace(CLOCKS, broker=False)), "in_delivery"),
        (Surroundings(FLEET, CLOCKS, busy=200), "waiting_for_slot"),
        (Surroundings(replace(FLEET, leader=False), CLOCKS), "no_relay"),
        (Surroundings(replace(FLEET, knowing=1), CLOCKS), "known_to_some"),
        (Surroundings(FLEET, CLOCKS), "in_delivery"),
    ],
)
def test_a_waiting_job_has_the_first_reason_that_applies(around: Surroundings, reason: str) -> None:
    assert explain(JOB, around).reason == reason


def test_a_deadline_is_the_next_event_when_it_comes_first() -> None:
    soon = JOB._replace(deadline=NOON + timedelta(seconds=1))
    found = explain(soon, Surroundings(replace(FLEET, workers=0), CLOCKS))
    assert (found.next_event, found.next_at) == ("its deadline passes: dead, expired", soon.deadline)
    late = JOB._replace(state=State.SCHEDULED, due_at=NOON, deadline=NOON + timedelta(days=1))
    assert explain(late, Surroundings(FLEET, CLOCKS)).next_at == NOON


def test_text_of_people_is_escaped_where_it_is_written() -> None:
    job = JOB._replace(state=State.CANCELLED, reason='not "needed"\n\\ é')
    assert json.loads(job_json(job))["reason"] == job.reason
