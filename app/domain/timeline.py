"""The record of a job in order of time: its attempts, and everything that happened to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from uuid import UUID

from app.domain.states import TERMINAL
from app.domain.views import EffectView, JobView, JsonText, dump


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt. `end` None: it runs now. `host`, `pid` None: its worker is no longer listed.

    `error` is JSON text; `cause` says why an attempt ended that did not fail (a signal, a shutdown).
    """

    attempt: int
    end: str | None
    cause: str | None
    error: JsonText | None
    worker_id: UUID | None
    host: str | None
    pid: int | None
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Action:
    """What an operator did to a job, and why."""

    at: datetime
    actor: str
    action: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, or will (`due`)."""

    at: datetime
    event: str
    details: dict[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Timeline:
    """Attempts by number, events by time."""

    job_id: UUID
    attempts: Sequence[Attempt]
    events: Sequence[Event]


def assemble(
    job: JobView, attempts: Sequence[Attempt], effects: Sequence[EffectView], actions: Sequence[Action]
) -> Timeline:
    """The timeline of `job`. Events of one instant keep the order in which they follow from each other."""
    events = [
        Event(job.created_at, "submitted", {"kind": job.kind, "queue": job.queue}),
        *(Event(a.at, "operator", {"action": a.action, "actor": a.actor, "reason": a.reason}) for a in actions),
        *_starts(attempts),
        *_effects(effects),
        *_ends(attempts),
        *_now(job),
    ]
    return Timeline(job.id, attempts, sorted(events, key=attrgetter("at")))


def timeline_json(timeline: Timeline) -> JsonText:
    """`{"job_id", "attempts": [...], "events": [{"at", "event", ...}]}`."""
    return dump(
        {
            "job_id": timeline.job_id,
            "attempts": [_attempt(attempt) for attempt in timeline.attempts],
            "events": [{"at": event.at, "event": event.event, **event.details} for event in timeline.events],
        }
    )


def _starts(attempts: Sequence[Attempt]) -> Iterator[Event]:
    for a in attempts:
        if a.started_at is not None:
            yield Event(a.started_at, "attempt_started", {"attempt": a.attempt, "host": a.host, "pid": a.pid})


def _ends(attempts: Sequence[Attempt]) -> Iterator[Event]:
    for a in attempts:
        if a.ended_at is not None:
            yield Event(a.ended_at, "attempt_ended", {"attempt": a.attempt, "end": a.end, "cause": a.cause})


def _effects(effects: Sequence[EffectView]) -> Iterator[Event]:
    for effect in effects:
        yield Event(effect.intent_at, "effect_begun", {"key": effect.key, "attempt": effect.attempt})
        if effect.recorded_at is not None:
            yield Event(effect.recorded_at, "effect_recorded", {"key": effect.key, "attempt": effect.attempt})


def _now(job: JobView) -> Iterator[Event]:
    if job.state in TERMINAL and job.finished_at is not None:
        yield Event(job.finished_at, str(job.state), {"reason": job.reason} if job.reason else {})
    if job.due_at is not None:
        yield Event(job.due_at, "due")


def _attempt(attempt: Attempt) -> dict[str, object]:
    worker = {"id": attempt.worker_id, "host": attempt.host, "pid": attempt.pid} if attempt.worker_id else None
    return {
        "attempt": attempt.attempt,
        "end": attempt.end,
        "cause": attempt.cause,
        "error": json.loads(attempt.error) if attempt.error else None,
        "worker": worker,
        "started_at": attempt.started_at,
        "ended_at": attempt.ended_at,
    }
