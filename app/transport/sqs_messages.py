"""What a message says, and how it is read. Anyone may have sent it, so nothing about it is trusted."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from app.domain import jsontext
from app.domain.errors import JsonRefused
from app.transport.base import Delivery

ATTEMPT_MAX = 2**31 - 1
BODY_CHARS_MAX = 200


def body_of(job_id: UUID, attempt: int) -> str:
    """The text of a message: ids, never a payload."""
    return f'{{"job":"{job_id}","attempt":{attempt}}}'


def delivery(queue: str, message: dict[str, Any]) -> Delivery | None:
    """A received message as a delivery; None when it is not one of ours."""
    body = message.get("Body", "")
    if not isinstance(body, str) or len(body) > BODY_CHARS_MAX:
        return None
    try:
        said = jsontext.read(body)
        if not isinstance(said, dict):
            return None
        job_id, attempt = said.get("job"), said.get("attempt")
        if not isinstance(job_id, str) or type(attempt) is not int or not 0 <= attempt <= ATTEMPT_MAX:
            return None
        return Delivery(queue, UUID(job_id), attempt, message["ReceiptHandle"])
    except (JsonRefused, ValueError):
        return None
