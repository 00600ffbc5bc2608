"""The demonstration's judgement is itself judged: each planted fault must break the promise it is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from examples.demo.caller import Answer, Document
from examples.demo.checks import Evidence, all_checks
from examples.demo.scenario import DEAD_AT_FIRST, DEAD_FOR_GOOD, EMPTY, KILLED, NONSENSE, REFUSED, tickets

KILLED_PID = 4_711
ATTEMPTS = {KILLED: 2, REFUSED: 2, NONSENSE: 3, "T-004": 2, "T-006": 2, "T-018": 2}
RETRIES = {NONSENSE: 2, "T-006": 1, "T-018": 1}


def effect(key: str, second: int, *, attempt: int = 1, calls: int = 1) -> Document:
    at = f"2025-03-01T12:00:{second:02d}Z"
    return {"key": key, "state": "recorded", "attempt": attempt, "calls": calls, "recorded_at": at}


def effects_of(ticket: str) -> list[Document]:
    if ticket == EMPTY:
        return []
    late = {"attempt": 2, "calls": 2} if ticket in (KILLED, REFUSED) else {}
    draft = effect("draft", 20, **late)
    last = [effect("file", 21, attempt=ATTEMPTS.get(ticket, 1))] if ticket != NONSENSE else []
    return [effect("classify", 1), effect("history", 2), draft, *last]


def job(ticket: str, document: Document) -> Document:
    reason = DEAD_FOR_GOOD.get(ticket)
    return {
        "state": "dead" if reason else "done",
        "reason": reason,
        "attempt": ATTEMPTS.get(ticket, 1),
        "retries": {"used": RETRIES.get(ticket, 0), "max": 2},
        "input": document,
    }


@pytest.fixture
def evidence() -> Evidence:
    """What a run in which everything held would leave."""
    jobs = {ticket.id: job(ticket.id, ticket.input) for ticket in tickets()}
    done = [ticket for ticket in jobs if jobs[ticket]["state"] == "done"]
    ends = [(1, "lost", KILLED_PID, 10), (2, "done", 4_712, 30)]
    return Evidence(
        answers={ticket: (Answer(f"id-{ticket}", 202, False), Answer(f"id-{ticket}", 200, True)) for ticket in jobs},
        strangers=set(),
        deaths=DEAD_AT_FIRST,
        jobs=jobs,
        effects={ticket: effects_of(ticket) for ticket in jobs},
        timeline={
            "attempts": [
                {"attempt": n, "end": end, "cause": None, "worker": {"pid": pid}, "ended_at": f"2025-03-01T12:00:{s}Z"}
                for n, end, pid, s in ends
            ]
        },
        killed_pid=KILLED_PID,
        supervisor_pids=frozenset({1, 2}),
        asked=Counter({(ticket, "classify"): 1 for ticket in jobs}),
        desk={
            "calls_by_key": {f"key-{ticket}": 1 for ticket in done},
            "filings_by_ticket": dict.fromkeys(done, 1),
            "look_ups_by_customer": {ticket.input["customer"]: 1 for ticket in tickets() if "customer" in ticket.input},
        },
        audit_code=0,
        stop_codes={"dev": 0},
        left_running=[],
    )


def test_a_run_in_which_everything_held_passes(evidence: Evidence) -> None:
    assert [check for check in all_checks(evidence) if not check.held] == []


def job_is(ticket: str, **changes: Any) -> Callable[[Evidence], Evidence]:
    return lambda seen: replace(seen, jobs={**seen.jobs, ticket: {**seen.jobs[ticket], **changes}})


def answer_is(number: int, answer: Answer) -> Callable[[Evidence], Evidence]:
    def plant(seen: Evidence) -> Evidence:
        pair = list(seen.answers["T-001"])
        pair[number] = answer
        return replace(seen, answers={**seen.answers, "T-001": (pair[0], pair[1])})

    return plant


def effect_is(ticket: str, key: str, **changes: Any) -> Callable[[Evidence], Evidence]:
    def plant(seen: Evidence) -> Evidence:
        changed = [found | (changes if found["key"] == key else {}) for found in seen.effects[ticket]]
        return replace(seen, effects={**seen.effects, ticket: changed})

    return plant


def attempt_is(number: int, **changes: Any) -> Callable[[Evidence], Evidence]:
    def plant(seen: Evidence) -> Evidence:
        timeline = deepcopy(seen.timeline)
        timeline["attempts"][number - 1] |= changes
        return replace(seen, timeline=timeline)

    return plant


def desk_says(name: str, key: str, count: int) -> Callable[[Evidence], Evidence]:
    return lambda seen: replace(seen, desk={**seen.desk, name: {**seen.desk[name], key: count}})


FAULTS: dict[str, tuple[str, Callable[[Evidence], Evidence]]] = {
    "a refused submit": ("every ticket is accepted", answer_is(0, Answer("id-T-001", 200, True))),
    "two jobs of one key": ("a repeated key", answer_is(1, Answer("id-other", 202, False))),
    "a job of nobody": ("no other job", lambda seen: replace(seen, strangers={"id-x"})),
    "another death": ("dead letters are the planned", lambda seen: replace(seen, deaths={"T-001": "expired"})),
    "a job that never ended": ("every other ticket is done", job_is("T-002", state="running")),
    "a cancelled job": ("every other ticket is done", job_is("T-002", state="cancelled")),
    "an effect of an empty ticket": (
        "the empty ticket performed nothing",
        lambda seen: replace(seen, effects={**seen.effects, EMPTY: [effect("classify", 1)]}),
    ),
    "no attempt lost": ("attempt 1 lost, attempt 2 done", attempt_is(1, end="released")),
    "a third attempt": (
        "attempt 1 lost, attempt 2 done",
        lambda seen: replace(
            seen, timeline={"attempts": [*seen.timeline["attempts"], {**seen.timeline["attempts"][1], "attempt": 3}]}
        ),
    ),
    "an attempt without end": ("classify: on record", attempt_is(1, ended_at=None)),
    "another process killed": ("not its supervisor", attempt_is(1, worker={"pid": 9})),
    "a supervisor killed": (
        "not its supervisor",
        lambda seen: replace(seen, supervisor_pids=frozenset({KILLED_PID})),
    ),
    "a retry charged for a crash": ("the kill cost no retry", job_is(KILLED, retries={"used": 1, "max": 2})),
    "classified again": ("classify: on record", effect_is(KILLED, "classify", attempt=2)),
    "called again": ("history: on record", effect_is(KILLED, "history", calls=2)),
    "recorded after the kill": ("history: on record", effect_is(KILLED, "history", recorded_at="2025-03-01T12:00:11Z")),
    "asked again in secret": (
        "the provider itself",
        lambda seen: replace(seen, asked=Counter(seen.asked) + Counter({(KILLED, "classify"): 1})),
    ),
    "looked up again in secret": ("the help desk itself", desk_says("look_ups_by_customer", "C-1011", 2)),
    "a draft that was not cut off": ("draft: cut off", effect_is(KILLED, "draft", calls=1)),
    "a retry charged for a quota": ("quota is charged", job_is("T-004", retries={"used": 1, "max": 2})),
    "a time-out charged twice": ("time-out is charged", job_is("T-006", retries={"used": 2, "max": 2}, attempt=3)),
    "nonsense taken for an answer": ("nonsense is charged", job_is("T-018", retries={"used": 0, "max": 2}, attempt=1)),
    "a replay that died": ("the replayed dead letter is done", job_is(REFUSED, state="dead", reason="permanent_error")),
    "a replay that began anew": ("its replay reused", effect_is(REFUSED, "classify", attempt=2, calls=2)),
    "a filing repeated": ("one call to the help desk", desk_says("calls_by_key", "key-T-001", 2)),
    "a ticket filed twice": ("filed: every ticket", desk_says("filings_by_ticket", "T-001", 2)),
    "a dead ticket filed": ("filed: every ticket", desk_says("filings_by_ticket", NONSENSE, 1)),
    "an audit with findings": ("the audit finds nothing", lambda seen: replace(seen, audit_code=8)),
    "a stop by force": ("outlast dev stops clean", lambda seen: replace(seen, stop_codes={"dev": -9})),
    "a process left": ("nothing is left running", lambda seen: replace(seen, left_running=[9])),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(evidence: Evidence, fault: str) -> None:
    promise, plant = FAULTS[fault]
    broken = [check.promise for check in all_checks(plant(evidence)) if not check.held]
    assert any(promise in found for found in broken), broken
