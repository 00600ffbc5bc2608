"""The reason that a caller or an operator gives for what they do: text that goes on record."""

from __future__ import annotations

from app.domain import jsontext
from app.domain.errors import JsonRefused, Refused
from app.domain.jsontext import JsonValue

REASON_CHARS_MAX = 2_000


def reason_in(body: JsonValue, *, required: bool) -> str | None:
    """The member `reason` of a request body `{"reason": text}`; it may be left out unless `required`.

    Raises `Refused` (422 `invalid-request`) for anything else.
    """
    if not isinstance(body, dict):
        raise _invalid("", "not an object")
    for name in body:
        if name != "reason":
            raise _invalid(_pointer(name), "unknown field")
    reason = body.get("reason")
    if reason is None:
        if required:
            raise _invalid("/reason", "a reason is required")
        return None
    if not isinstance(reason, str):
        raise _invalid("/reason", "not a text")
    return checked_reason(reason)


def checked_reason(reason: str) -> str:
    """The reason itself. Raises `Refused` (422 `invalid-request`) when it is empty, too long or not storable."""
    if not reason.strip():
        raise _invalid("/reason", "a reason may not be empty")
    if len(reason) > REASON_CHARS_MAX:
        raise _invalid("/reason", f"longer than {REASON_CHARS_MAX} characters")
    try:
        jsontext.check(reason)
    except JsonRefused as refused:
        raise _invalid("/reason", refused.why) from refused
    return reason


def _pointer(name: str) -> str:
    try:
        jsontext.check(name)
    except JsonRefused:
        return ""
    return jsontext.token(name)


def _invalid(pointer: str, why: str) -> Refused:
    return Refused("invalid-request", 422, "The request is not valid.", errors=[{"pointer": pointer, "detail": why}])
