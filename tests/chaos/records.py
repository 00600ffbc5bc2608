"""What a chaos run leaves behind: four logs and the rows of the database. All times are seconds since the epoch.

Clients, handlers, faults and PostgreSQL of a run share one machine and so one clock. Where a run shifts it for a
process, that process still writes its log by the true one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from app.domain.states import AttemptEnd, State


class Part(StrEnum):
    """What a job of the load does."""

    OK = "ok"
    FLAKY = "flaky"
    SLOW = "slow"
    PERMANENT = "permanent"
    EFFECT = "effect"


class Verb(StrEnum):
    SUBMIT = "submit"
    CANCEL = "cancel"
    REPLAY = "replay"


class Phase(StrEnum):
    """`CUT` is a call without an answer: whether it happened is unknown."""

    BEFORE = "before"
    AFTER = "after"
    CUT = "cut"


@dataclass(frozen=True, slots=True)
class Call:
    """A line of the client log. `key` is the idempotency key of a submit and the job id of anything else.

    `retry_after` is what the answer's header of that name says, when it has one.
    """

    at: float
    phase: Phase
    verb: Verb
    key: str
    status: int = 0
    job_id: str = ""
    retry_after: str = ""

    @property
    def accepted(self) -> bool:
        return self.phase is Phase.AFTER and 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class HandlerLine:
    """A line of the handler log: `start` of an attempt, or `perform` just before an outside call.

    `at` is the true time; `shift` is by how much the clock of the process was off, in seconds.
    """

    at: float
    event: str
    job_id: str
    attempt: int
    sink_key: str = ""
    shift: float = 0.0


@dataclass(frozen=True, slots=True)
class Fired:
    """A line of the fault log. `healed_at` is when what it took away was back."""

    at: float
    healed_at: float
    fault: str
    hit: str


@dataclass(frozen=True, slots=True)
class Sighting:
    """The row that owned a job at a moment. `due_at` is known while the job waits."""

    at: float
    job_id: str
    state: State
    attempt: int
    retries: int
    crashes: int
    due_at: float | None = None


@dataclass(frozen=True, slots=True)
class JobRow:
    """`key` is what the client called it, `part` what it was to do, `delay_seconds` how long it was to wait first."""

    job_id: str
    key: str
    part: Part
    max_retries: int = 2
    created_at: float = 0.0
    delay_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class HomeRow:
    """A row that owns a job at the end of the run. `attempt_started_at` and `ended_at` are of its last attempt.

    `result_attempt` is the attempt whose handler returned the result, by the result's own word.
    """

    job_id: str
    state: State
    reason: str | None
    attempt: int
    retries: int
    crashes: int
    releases: int
    attempt_started_at: float | None
    ended_at: float | None
    result_attempt: int | None = None


@dataclass(frozen=True, slots=True)
class AttemptRow:
    job_id: str
    attempt: int
    end: AttemptEnd
    started_at: float
    ended_at: float


@dataclass(frozen=True, slots=True)
class EffectRow:
    """`attempt` is whose intent stands; `calls` is how many calls the product owns up to."""

    job_id: str
    attempt: int
    calls: int
    recorded: bool


@dataclass(frozen=True)
class History:
    """Everything the checker looks at. `sink_calls` counts calls by idempotency key, `filings` effects by job."""

    calls: Sequence[Call] = ()
    handler: Sequence[HandlerLine] = ()
    faults: Sequence[Fired] = ()
    sightings: Sequence[Sighting] = ()
    jobs: Sequence[JobRow] = ()
    homes: Sequence[HomeRow] = ()
    attempts: Sequence[AttemptRow] = ()
    effects: Sequence[EffectRow] = ()
    replays: Sequence[str] = ()
    sink_calls: Mapping[str, int] = field(default_factory=dict[str, int])
    filings: Mapping[str, int] = field(default_factory=dict[str, int])
    to_replay: frozenset[str] = frozenset()
    max_crashes: int = 3
    late_refused: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be. `rule` is a name of the checker's or of the closing look."""

    rule: str
    job_id: str
    detail: str
