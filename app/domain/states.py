"""A job is whatever row it owns: states, their homes, and the closed lists of reasons.

| state     | row in                        | how it gets in                              | who takes it out                                   |
|-----------|-------------------------------|---------------------------------------------|----------------------------------------------------|
| scheduled | outbox, deferred, never tried | submit with `run_at` / `delay_seconds`      | time; cancel; deadline                             |
| queued    | outbox, due                   | submit, replay, release, rescue, due retry  | a worker's claim; cancel; deadline                 |
| retrying  | outbox, deferred, tried       | a transient failure                         | time; cancel; deadline                             |
| leased    | leases, not started           | a claim whose job waits inside the worker   | the handler's start; rescue; cancel; deadline      |
| running   | leases, started               | a claim                                     | finish, retry, bury, release, rescue, cancel, deadline |
| dead      | dead_letters                  | bury, with a reason                         | replay or discard; a caller's retry in the budget  |
| done      | outcomes                      | finish                                      | nobody, ever                                       |
| cancelled | outcomes                      | cancel; discard of a dead letter            | nobody, ever                                       |
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    RETRYING = "retrying"
    LEASED = "leased"
    RUNNING = "running"
    DEAD = "dead"
    DONE = "done"
    CANCELLED = "cancelled"


class Home(StrEnum):
    """The tables of which every job owns exactly one row."""

    OUTBOX = "outbox"
    LEASES = "leases"
    DEAD_LETTERS = "dead_letters"
    OUTCOMES = "outcomes"


HOME_OF: dict[State, Home] = {
    State.SCHEDULED: Home.OUTBOX,
    State.QUEUED: Home.OUTBOX,
    State.RETRYING: Home.OUTBOX,
    State.LEASED: Home.LEASES,
    State.RUNNING: Home.LEASES,
    State.DEAD: Home.DEAD_LETTERS,
    State.DONE: Home.OUTCOMES,
    State.CANCELLED: Home.OUTCOMES,
}

FINAL = frozenset({State.DONE, State.CANCELLED})
TERMINAL = FINAL | {State.DEAD}


class Reason(StrEnum):
    """Why a job is dead. The list is closed; a CHECK in the schema holds it."""

    PERMANENT_ERROR = "permanent_error"
    RETRIES_EXHAUSTED = "retries_exhausted"
    CRASHES_EXHAUSTED = "crashes_exhausted"
    INVALID_INPUT = "invalid_input"
    INVALID_OUTPUT = "invalid_output"
    TIMED_OUT = "timed_out"
    EXPIRED = "expired"
    EFFECT_UNKNOWN = "effect_unknown"
    EFFECT_MISMATCH = "effect_mismatch"
    UNKNOWN_KIND = "unknown_kind"
    RESULT_TOO_LARGE = "result_too_large"


class AttemptEnd(StrEnum):
    """How an attempt ended. The list is closed; a CHECK in the schema holds it."""

    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    RELEASED = "released"
    CANCELLED = "cancelled"
    FENCED = "fenced"


class EffectState(StrEnum):
    INTENT = "intent"
    RECORDED = "recorded"
    CLEARED = "cleared"


class Policy(StrEnum):
    """What to do when an intent has no result."""

    REPEATABLE = "repeatable"
    AT_MOST_ONCE = "at_most_once"
    RECONCILE = "reconcile"
