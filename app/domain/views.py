"""A job and its dead letter as callers see them, and how they are written as JSON.

`input`, `result`, `error`, `progress` and `metadata` stay JSON text from the column to the answer, so
that no digit and no order of keys can change on the way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from json.encoder import encode_basestring
from typing import NamedTuple
from uuid import UUID

from app.domain.instants import rfc3339
from app.domain.states import State

JsonText = str


class JobView(NamedTuple):
    """A job at one moment.

    `state` is None only when the conservation law is broken (`outlast audit` names the job).
    `due_at` is set while the job waits, `progress` while it runs, `finished_at` once it is done,
    cancelled or dead. `fingerprint` groups dead letters. Lists leave `input` and `result` None.
    """

    id: UUID
    kind: str
    queue: str
    priority: int
    state: State | None
    reason: str | None
    attempt: int
    retries: int
    max_retries: int
    crashes: int
    releases: int
    timeout_seconds: float
    metadata: JsonText | None
    error: JsonText | None
    progress: JsonText | None
    fingerprint: str | None
    created_at: datetime
    due_at: datetime | None
    deadline: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    input: JsonText | None = None
    result: JsonText | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list. Only `next_cursor` None is the end: a sparse filter gives short pages."""

    data: list[JobView]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class EffectView:
    """An effect as it is on record; `result` is JSON text."""

    key: str
    state: str
    policy: str
    calls: int
    attempt: int
    result: JsonText | None
    intent_at: datetime
    recorded_at: datetime | None


def dump(value: object) -> JsonText:
    """Compact JSON text of what holds only JSON values, UUIDs and times."""
    return _encode(value)


def job_json(job: JobView, *, payloads: bool = True) -> JsonText:
    """The job as one JSON object; without `input` and `result` when `payloads` is false."""
    return f"{{{_members(job, payloads=payloads)}}}"


def dead_letter_json(job: JobView, *, payloads: bool = True) -> JsonText:
    """A dead job with `fingerprint` and `died_at` beside everything a job has."""
    of_letter = f'"fingerprint":{_text(job.fingerprint)},"died_at":{_time(job.finished_at)}'
    return f"{{{_members(job, payloads=payloads)},{of_letter}}}"


def page_json(items: Iterable[JsonText], next_cursor: str | None) -> JsonText:
    """`{"data": [...], "next_cursor": ...}` of items that are JSON text already."""
    return _object({"data": _array(items), "next_cursor": dump(next_cursor)})


def list_json(items: Iterable[JsonText]) -> JsonText:
    """`{"data": [...]}` of items that are JSON text already."""
    return _object({"data": _array(items)})


def effect_json(effect: EffectView) -> JsonText:
    """The effect as one JSON object."""
    return _object(
        {
            "key": dump(effect.key),
            "state": dump(effect.state),
            "policy": dump(effect.policy),
            "calls": dump(effect.calls),
            "attempt": dump(effect.attempt),
            "result": _or_null(effect.result),
            "intent_at": dump(effect.intent_at),
            "recorded_at": dump(effect.recorded_at),
        }
    )


def _members(job: JobView, *, payloads: bool) -> JsonText:
    job_id = str(job.id)
    bulky = f'"input":{_or_null(job.input)},"result":{_or_null(job.result)},' if payloads else ""
    return (
        f'"id":"{job_id}","kind":{_text(job.kind)},"queue":{_text(job.queue)},"priority":{job.priority},'
        f'"state":{_text(job.state)},"reason":{_text(job.reason)},"attempt":{job.attempt},'
        f'"retries":{{"used":{job.retries},"max":{job.max_retries}}},"crashes":{job.crashes},{bulky}'
        f'"error":{_or_null(job.error)},"progress":{_or_null(job.progress)},"metadata":{_or_null(job.metadata)},'
        f'"timeout_seconds":{job.timeout_seconds!r},"created_at":{_time(job.created_at)},"due_at":{_time(job.due_at)},'
        f'"deadline":{_time(job.deadline)},"started_at":{_time(job.started_at)},'
        f'"finished_at":{_time(job.finished_at)},"links":{_links(job_id, dead=job.state is State.DEAD)}'
    )


def _links(job_id: str, *, dead: bool) -> JsonText:
    here = f"/v1/jobs/{job_id}"
    letter = f',"dead_letter":"/v1/dead-letters/{job_id}"' if dead else ""
    return (
        f'{{"self":"{here}","result":"{here}/result","timeline":"{here}/timeline","explanation":"{here}/explanation",'
        f'"effects":"{here}/effects","cancel":"{here}/cancel","retry":"{here}/retry"{letter}}}'
    )


def _object(members: Mapping[str, JsonText]) -> JsonText:
    return "{" + ",".join(f'"{name}":{text}' for name, text in members.items()) + "}"


def _array(items: Iterable[JsonText]) -> JsonText:
    return f"[{','.join(items)}]"


def _or_null(text: JsonText | None) -> JsonText:
    return "null" if text is None else text


def _text(text: str | None) -> JsonText:
    return "null" if text is None else encode_basestring(text)


@lru_cache(64)
def _time(at: datetime | None) -> JsonText:
    """What is submitted together has one time."""
    return "null" if at is None else f'"{rfc3339(at)}"'


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain).encode
