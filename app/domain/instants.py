"""Instants as text: RFC 3339, UTC, always with a zone. And as the least UUIDv7 of a time."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

_RANDOM_BITS = 80
_MILLISECONDS_MAX = (1 << 48) - 1


def rfc3339(at: datetime) -> str:
    """`2031-01-01T12:00:00.000000Z`: UTC, microseconds always there, so that texts sort like times."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def uuid_floor(at: datetime) -> UUID:
    """The least UUIDv7 of the millisecond of `at`, as `outlast_uuid_floor` in the schema."""
    since_epoch = at - datetime(1970, 1, 1, tzinfo=UTC)
    milliseconds = (since_epoch.days * 86_400 + since_epoch.seconds) * 1_000 + since_epoch.microseconds // 1_000
    return UUID(int=min(max(milliseconds, 0), _MILLISECONDS_MAX) << _RANDOM_BITS)
