"""A request to run a job: how it is read, what its digest is, and how it compares with the job on record."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

from app.domain import jsontext
from app.domain.errors import Refused
from app.domain.instants import rfc3339
from app.domain.jsontext import JsonObject, JsonValue, token
from app.domain.kinds import MAX_RETRIES_CAP, NAME_PATTERN, PRIORITY_MAX, TIMEOUT_SECONDS_MAX, is_name

METADATA_BYTES_MAX = 16_384
KEY_CHARS_MAX = 255
ERRORS_MAX = 20
DAY_SECONDS = 86_400
DELAY_SECONDS_MAX = 36_600 * DAY_SECONDS
TIMEOUT_SECONDS_MIN = 0.001
DELAY_TOLERANCE_SECONDS = 0.001

_REQUIRED = ("kind", "input")

_is_key = re.compile(rf"[\x21-\x7e]{{1,{KEY_CHARS_MAX}}}").fullmatch
_is_instant = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})", re.IGNORECASE
).fullmatch
_encode_canonical = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")).encode


class JobRequest(NamedTuple):
    """What a caller asked for. None: left out (for `input`, JSON null); times are in UTC."""

    kind: str
    input: JsonValue
    queue: str | None = None
    priority: int | None = None
    run_at: datetime | None = None
    delay_seconds: float | None = None
    deadline: datetime | None = None
    timeout_seconds: float | None = None
    max_retries: int | None = None
    metadata: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """What the job on record was given, with its kind's defaults filled in."""

    kind: str
    input: JsonValue
    queue: str
    priority: int
    run_at: datetime | None
    deadline: datetime | None
    timeout_seconds: float
    max_retries: int
    metadata: JsonValue
    created_at: datetime


def read_request(body: JsonValue, *, pointer: str = "") -> JobRequest:
    """A request out of a parsed body that stands at `pointer` in its document.

    Raises `JsonRefused` for JSON we do not keep, and `Refused` 422 `invalid-request` naming every member
    that is wrong.
    """
    if not isinstance(body, dict):
        raise _invalid([{"pointer": pointer, "detail": "must be an object"}])
    jsontext.check(body, pointer=pointer, depth_max=jsontext.DEPTH_MAX + 1)
    members, faults = _members(body)
    run_at, deadline = members.get("run_at"), members.get("deadline")
    if run_at is not None and "delay_seconds" in members:
        faults.append(("delay_seconds", "may not stand beside run_at"))
    if run_at is not None and deadline is not None and deadline <= run_at:
        faults.append(("deadline", "must be later than run_at"))
    if faults:
        raise _invalid([{"pointer": pointer + token(name), "detail": detail} for name, detail in faults])
    return JobRequest(**members)


def refuse_beyond_horizon(request: JobRequest, now: datetime, horizon_days: int, *, pointer: str = "") -> None:
    """Raises `Refused` 422 when a time of the request is more than `horizon_days` after `now`."""
    if request.run_at is request.delay_seconds is request.deadline is None:
        return
    horizon = now + timedelta(days=horizon_days)
    late = [f"/{name}" for name in ("run_at", "deadline") if (getattr(request, name) or now) > horizon]
    if (request.delay_seconds or 0) > horizon_days * DAY_SECONDS:
        late.append("/delay_seconds")
    if late:
        raise _invalid(
            [{"pointer": pointer + place, "detail": f"is more than {horizon_days} days away"} for place in late]
        )


def read_key(text: str, *, pointer: str = "") -> str:
    """An idempotency key. Raises `Refused` 422 unless it is 1-255 visible ASCII characters."""
    if _is_key(text) is None:
        detail = f"An idempotency key has 1 to {KEY_CHARS_MAX} visible ASCII characters."
        raise Refused("invalid-idempotency-key", 422, detail, errors=[{"pointer": pointer, "detail": detail}])
    return text


def read_instant(text: str) -> datetime:
    """An instant in UTC out of RFC 3339 text with a zone. Raises `ValueError` saying what is wrong."""
    if _is_instant(text) is None:
        raise ValueError("must be an RFC 3339 date and time with a zone")
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("is not a date and time that exists") from None


def canonical(value: JsonValue) -> str:
    """One text for equal JSON values: sorted keys, exact integers, a float that is an integer written as one."""
    return _encode_canonical(_plain(value))


def request_digest(request: JobRequest) -> UUID:
    """SHA-256, first 16 bytes, over the canonical JSON of the request as it was sent."""
    sent: JsonObject = {"kind": request.kind, "input": request.input}
    for name in ("queue", "priority", "delay_seconds", "timeout_seconds", "max_retries", "metadata"):
        if getattr(request, name) is not None:
            sent[name] = getattr(request, name)
    for name, at in (("run_at", request.run_at), ("deadline", request.deadline)):
        if at is not None:
            sent[name] = rfc3339(at)
    return _digest(canonical(sent))


def key_digest(tenant: str, key: str) -> UUID:
    """SHA-256, first 16 bytes, of an idempotency key in its tenant."""
    return _digest(f"{tenant}\0{key}")


def differences(request: JobRequest, stored: StoredRequest) -> list[str]:
    """Pointers to what the request asks for and the stored job was not given.

    What the request leaves out counts as equal; `input` and `metadata` are compared as JSON values.
    """
    found = _json_differences(request.input, stored.input, "/input")
    if request.metadata is not None:
        found += _json_differences(request.metadata, stored.metadata, "/metadata")
    for name in ("kind", "queue", "priority", "deadline", "timeout_seconds", "max_retries"):
        asked = getattr(request, name)
        if asked is not None and asked != getattr(stored, name):
            found.append("/" + name)
    starts_at = stored.run_at or stored.created_at
    if request.run_at is not None and request.run_at != starts_at:
        found.append("/run_at")
    if request.delay_seconds is not None:
        stored_delay = (starts_at - stored.created_at).total_seconds()
        if abs(request.delay_seconds - stored_delay) > DELAY_TOLERANCE_SECONDS:
            found.append("/delay_seconds")
    return found


def _invalid(errors: list[dict[str, str]]) -> Refused:
    return Refused("invalid-request", 422, "The request is not valid.", errors=errors)


def _digest(text: str) -> UUID:
    return UUID(bytes=sha256(text.encode()).digest()[:16])


def _plain(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _json_differences(one: JsonValue, other: JsonValue, pointer: str) -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        found: list[str] = []
        for key in dict.fromkeys((*one, *other)):
            place = pointer + token(key)
            both = key in one and key in other
            found += _json_differences(one[key], other[key], place) if both else [place]
        return found
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [
            place
            for index, pair in enumerate(zip(one, other, strict=True))
            for place in _json_differences(*pair, pointer + token(index))
        ]
    return [] if canonical(one) == canonical(other) else [pointer]


class _Unfit(ValueError):
    """A member's value is not what it must be; the text finishes the sentence that its name begins."""


def _name(value: JsonValue) -> str:
    if not isinstance(value, str) or not is_name(value):
        raise _Unfit(f"must be text that matches {NAME_PATTERN}")
    return value


def _json(value: JsonValue) -> JsonValue:
    return value


def _integer(least: int, greatest: int) -> Callable[[JsonValue], int]:
    def read(value: JsonValue) -> int:
        number = _plain(value)
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= greatest:
            raise _Unfit(f"must be an integer from {least} to {greatest}")
        return number

    return read


def _seconds(least: float, greatest: float) -> Callable[[JsonValue], float]:
    def read(value: JsonValue) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= greatest:
            raise _Unfit(f"must be a number of seconds from {least:g} to {greatest:g}")
        return float(value)

    return read


def _instant(value: JsonValue) -> datetime:
    if not isinstance(value, str):
        raise _Unfit("must be an RFC 3339 date and time with a zone")
    return read_instant(value)


def _metadata(value: JsonValue) -> JsonObject:
    if not isinstance(value, dict):
        raise _Unfit("must be an object")
    if len(jsontext.dump(value).encode()) > METADATA_BYTES_MAX:
        raise _Unfit(f"may have {METADATA_BYTES_MAX} bytes")
    return value


_MEMBERS: dict[str, Callable[[JsonValue], Any]] = {
    "kind": _name,
    "input": _json,
    "queue": _name,
    "priority": _integer(0, PRIORITY_MAX),
    "run_at": _instant,
    "delay_seconds": _seconds(0, DELAY_SECONDS_MAX),
    "deadline": _instant,
    "timeout_seconds": _seconds(TIMEOUT_SECONDS_MIN, TIMEOUT_SECONDS_MAX),
    "max_retries": _integer(0, MAX_RETRIES_CAP),
    "metadata": _metadata,
}


def _members(body: JsonObject) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The members, read, and the names of those that are wrong, each with what is. Null is absent where it may be."""
    members: dict[str, Any] = {}
    faults = [(name, "is required") for name in _REQUIRED if name not in body]
    unknown: list[str] = []
    for name, value in body.items():
        read = _MEMBERS.get(name)
        if read is None:
            unknown.append(name)
        elif value is not None or name in _REQUIRED:
            try:
                members[name] = read(value)
            except ValueError as error:
                faults.append((name, str(error)))
    return members, faults + [(name, "is not known here") for name in unknown[:ERRORS_MAX]]
