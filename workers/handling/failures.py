"""What an exception out of a handler means, and how it is told.

| exception                                              | means                                   |
|--------------------------------------------------------|-----------------------------------------|
| `Transient`, `Throttled`, `Permanent`                  | what they say                           |
| `NotPerformed`                                         | as its cause; without one, transient    |
| connection lost or refused, time-out (built in, httpx) | transient                               |
| an HTTP answer 408 or 5xx                              | transient                               |
| an HTTP answer 429                                     | throttled                               |
| a database's answer of SQLSTATE class 08, 40, 53, 57   | transient                               |
| `EffectUnknown`, `EffectMismatch`                      | dead under that reason                  |
| `LeaseLost`                                            | nothing to write                        |
| a group of exceptions                                  | the worst of its members                |
| everything else                                        | permanent: a bug burns money on retries |

An HTTP answer is recognised by the exception's `response.status_code`, `status_code` or (urllib) `code`,
so the errors of most clients and providers' libraries are covered.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import cast
from urllib.error import URLError

from pydantic import ValidationError

from app.domain.decide import Ending, Fenced, Final, Passing
from app.domain.errors import (
    DependencyAway,
    EffectMismatch,
    EffectUnknown,
    LeaseLost,
    NotPerformed,
    Permanent,
    Throttled,
    Transient,
)
from app.domain.outcomes import MESSAGE_CHARS_MAX, Failure
from app.domain.states import Reason

PASSING = (TimeoutError, ConnectionError, DependencyAway)
HTTPX_PASSING = ("TimeoutException", "NetworkError", "ProxyError", "RemoteProtocolError")

# Connection, rolled back (deadlock, serialization), resources, stopped by an operator.
PASSING_SQLSTATES = ("08", "40", "53", "57")
REQUEST_TIMEOUT = 408
TOO_MANY_REQUESTS = 429

_FIELDS_SHOWN_MAX = 10
_SEARCHED_CHARS_MAX = 2 * MESSAGE_CHARS_MAX
_CUT_MARK = " … (cut)"
_FINGERPRINT_HEX = 16
# What follows the host of a URL, and who is named before it, is a caller's data or a secret.
_url = re.compile(r"\b([a-z][a-z0-9+.-]{1,20}://)(?:[^\s/@]{1,200}@)?([^\s/?#'\"<>@]{1,255})[^\s'\"<>]*", re.IGNORECASE)
_unkept = re.compile("[\0\ud800-\udfff]")
_varying = re.compile(r"'[^']*'|\"[^\"]*\"|\b[0-9a-f]{8,}(?:-[0-9a-f]+)*\b|\d+", re.IGNORECASE)


def ending_of(error: BaseException) -> Ending:
    """What the exception means for its attempt. Raises nothing, whatever the exception's own code does."""
    try:
        return _ending_of(error)
    except BaseException as broken:
        unread = f"(what it says cannot be read: {type(broken).__name__})"
        return Final(Reason.PERMANENT_ERROR, described(type(error).__name__, unread))


def _ending_of(error: BaseException) -> Ending:
    if isinstance(error, BaseExceptionGroup):
        members = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return max((_ending_of(member) for member in members), key=_gravity)
    match error:
        case LeaseLost():
            return Fenced()
        case EffectUnknown():
            return Final(Reason.EFFECT_UNKNOWN, failure_of(error))
        case EffectMismatch():
            return Final(Reason.EFFECT_MISMATCH, failure_of(error))
        case Permanent():
            return Final(Reason.PERMANENT_ERROR, failure_of(error))
        case Transient():
            return Passing(failure_of(error), _seconds(error.retry_after), quota=isinstance(error, Throttled))
        case NotPerformed():
            return _ending_of(error.__cause__) if error.__cause__ else Passing(failure_of(error))
        case _:
            return _foreign_ending(error)


def failure_of(error: BaseException) -> Failure:
    """The exception as it may be stored and shown.

    The text is cut to 2,000 characters; URLs keep only scheme and host, a failed validation names
    places and rules but no values, and characters that JSON text cannot keep become U+FFFD.
    """
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return described(kept_text(name), text_of(error), status=_status_of(error))


def described(type_name: str, text: str, *, status: int | None = None) -> Failure:
    """A failure told in words, cut and cleaned as in `failure_of`; `status` is that of an HTTP answer.

    The fingerprint leaves out what varies within one kind of failure: numbers, ids, quoted words.
    """
    message = _cut(_url.sub(r"\1\2/…", kept_text(text[:_SEARCHED_CHARS_MAX])), whole=len(text) <= _SEARCHED_CHARS_MAX)
    pattern = _varying.sub("#", message.partition("\n")[0])
    digest = sha256(f"{type_name}\0{status}\0{pattern}".encode()).hexdigest()
    return Failure(type_name, message, digest[:_FINGERPRINT_HEX])


def _foreign_ending(error: BaseException) -> Ending:
    status = _status_of(error)
    if status == TOO_MANY_REQUESTS:
        return Passing(failure_of(error), _retry_after(error), quota=True)
    if status is not None:
        passing = status == REQUEST_TIMEOUT or 500 <= status <= 599
    else:
        reason = error.reason if isinstance(error, URLError) else error
        passing = (
            isinstance(reason, (*PASSING, *_httpx_passing()))
            or str(_attribute(error, "sqlstate"))[:2] in PASSING_SQLSTATES
        )
    if passing:
        return Passing(failure_of(error), _retry_after(error))
    return Final(Reason.PERMANENT_ERROR, failure_of(error))


def _httpx_passing() -> Iterator[type[Exception]]:
    """Httpx's passing errors: only where a handler has loaded it can it have raised one, and it is slow to load."""
    httpx = sys.modules.get("httpx")
    found = (getattr(httpx, name, None) for name in HTTPX_PASSING)  # another thread may be about to load it
    return (error for error in found if error is not None)


def _gravity(ending: Ending) -> tuple[int, float]:
    match ending:
        case Fenced():
            return 3, 0
        case Final(Reason.PERMANENT_ERROR, _):
            return 1, 0
        case Final():
            return 2, 0
        case Passing(_, retry_after, quota):
            return 0, -1 if quota else retry_after or 0
        case _:
            return 0, 0


def _status_of(error: BaseException) -> int | None:
    """The HTTP status of the answer that the exception tells of."""
    candidates = (
        _attribute(_attribute(error, "response"), "status_code"),
        _attribute(error, "status_code"),
        _attribute(error, "code") if isinstance(error, URLError) else None,
    )
    return next((one for one in candidates if isinstance(one, int)), None)


def _retry_after(error: BaseException) -> float | None:
    """Seconds of a `Retry-After` header (RFC 9110, 10.2.3) of the answer, if there is one.

    A date is read by the clock of whoever wrote it, the answer's `Date`: ours may be wrong by any amount.
    """
    headers = _attribute(_attribute(error, "response"), "headers") or _attribute(error, "headers")
    text = _header(headers, "retry-after")
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        at, now = _instant(text), _instant(_header(headers, "date") or "")
    return None if at is None else max(0.0, at - (time.time() if now is None else now))


def _header(headers: object, name: str) -> str | None:
    read = _attribute(headers, "get")
    text = read(name) if callable(read) else None
    return text if isinstance(text, str) else None


def _seconds(given: object) -> float | None:
    """What a handler gave as a number of seconds, if it is one."""
    try:
        return None if given is None else float(cast("float", given))
    except (TypeError, ValueError, OverflowError):
        return None


def _attribute(holder: object, name: str) -> object:
    """An attribute of a foreign object, whose properties may raise anything."""
    try:
        return getattr(holder, name, None)
    except Exception:
        return None


def _instant(http_date: str) -> float | None:
    try:
        instant = parsedate_to_datetime(http_date)
    except ValueError:
        return None
    return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()


def text_of(error: BaseException) -> str:
    """The exception's text, as long as it is; a failed validation names places and rules but no values."""
    if isinstance(error, ValidationError):
        return _rules_broken(error)
    try:
        return str(error)
    except Exception as broken:  # an exception's own __str__ is foreign code
        return f"(its text cannot be read: {type(broken).__name__})"


def _rules_broken(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [f"{_place(fault['loc'])}: {fault['msg']}" for fault in faults[:_FIELDS_SHOWN_MAX]]
    more = len(faults) - len(shown)
    return "; ".join([*shown, f"and {more} more"] if more else shown)


def _place(location: Iterable[int | str]) -> str:
    return "/" + "/".join(str(step) for step in location)


def kept_text(text: str) -> str:
    """The text with U+FFFD for what JSON text cannot keep: NUL and lone surrogates."""
    return _unkept.sub("\ufffd", text)


def _cut(text: str, *, whole: bool) -> str:
    if whole and len(text) <= MESSAGE_CHARS_MAX:
        return text
    return text[: MESSAGE_CHARS_MAX - len(_CUT_MARK)] + _CUT_MARK
