"""How an entry of a stream is read. Anyone may have written it, so nothing about it is trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from app.transport import keys
from app.transport.base import Delivery

ATTEMPT_MAX = 2**31 - 1

_JOB = keys.JOB_FIELD.encode()
_ATTEMPT = keys.ATTEMPT_FIELD.encode()


def delivery(queue: str, entry: Sequence[Any]) -> Delivery | None:
    """An entry `[id, [field, value, ...]]` as a delivery; None when it is not one of ours."""
    fence = fence_of(entry[1])
    return Delivery(queue, fence[0], fence[1], entry[0].decode()) if fence else None


def fence_of(flat: Sequence[bytes]) -> tuple[UUID, int] | None:
    """The (job id, attempt) of an entry's fields; None when they are not one of ours."""
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    try:
        job_id, attempt = UUID(fields[_JOB].decode("ascii")), int(fields[_ATTEMPT][:10])
    except (KeyError, ValueError):
        return None
    return (job_id, attempt) if 0 <= attempt <= ATTEMPT_MAX else None


def job_named_in(flat: Sequence[bytes]) -> UUID | None:
    """The job an entry is about, as far as anything in it reads as an id; also when it is not one of ours."""
    for value in flat[1::2]:
        try:
            return UUID(value.decode("ascii"))
        except ValueError:
            continue
    return None
