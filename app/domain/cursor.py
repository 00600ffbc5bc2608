"""Where a list goes on, as text that callers pass back and do not read.

A cursor is the position after which the next page begins, bound by a digest to the filters it was
made under: with other filters the position means nothing, so it is refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from uuid import UUID

from app.domain.errors import Refused
from app.domain.filters import DeadFilter, JobFilter
from app.domain.instants import rfc3339

_DIGEST_BYTES = 8
_MICROSECONDS_BYTES = 8
_ID_BYTES = 16
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def job_cursor(filters: JobFilter, after: UUID) -> str:
    """The cursor behind the job `after`."""
    return _encode(filters, after.bytes)


def job_position(filters: JobFilter, cursor: str) -> UUID:
    """The id behind which the list goes on. Raises `Refused` (422 `invalid-cursor`)."""
    return UUID(bytes=_decode(filters, cursor, _ID_BYTES))


def dead_cursor(filters: DeadFilter, died_at: datetime, after: UUID) -> str:
    """The cursor behind the dead letter `after`, which died at `died_at`."""
    microseconds = (died_at - _EPOCH) // _MICROSECOND
    return _encode(filters, microseconds.to_bytes(_MICROSECONDS_BYTES, "big", signed=True) + after.bytes)


def dead_position(filters: DeadFilter, cursor: str) -> tuple[datetime, UUID]:
    """Time of death and id behind which the list goes on. Raises `Refused` (422 `invalid-cursor`)."""
    raw = _decode(filters, cursor, _MICROSECONDS_BYTES + _ID_BYTES)
    microseconds = int.from_bytes(raw[:_MICROSECONDS_BYTES], "big", signed=True)
    try:
        died_at = _EPOCH + microseconds * _MICROSECOND
    except OverflowError as error:
        raise _refused() from error
    return died_at, UUID(bytes=raw[_MICROSECONDS_BYTES:])


def _encode(filters: JobFilter | DeadFilter, position: bytes) -> str:
    return base64.urlsafe_b64encode(_digest(filters) + position).rstrip(b"=").decode("ascii")


def _decode(filters: JobFilter | DeadFilter, cursor: str, position_bytes: int) -> bytes:
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise _refused() from error
    if len(raw) != _DIGEST_BYTES + position_bytes or raw[:_DIGEST_BYTES] != _digest(filters):
        raise _refused()
    return raw[_DIGEST_BYTES:]


def _digest(filters: JobFilter | DeadFilter) -> bytes:
    named = {name: rfc3339(v) if isinstance(v, datetime) else v for name, v in asdict(filters).items()}
    text = json.dumps([type(filters).__name__, named], sort_keys=True)
    return hashlib.sha256(text.encode()).digest()[:_DIGEST_BYTES]


def _refused() -> Refused:
    return Refused(
        "invalid-cursor",
        422,
        "The cursor is not one of this list: pass next_cursor back unchanged, with the same filters.",
        errors=[{"pointer": "/cursor", "detail": "not a cursor of this list"}],
    )
