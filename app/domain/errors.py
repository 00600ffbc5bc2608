"""Every error Outlast raises has one root.

OutlastError
├── HandlerError            what a handler may raise to say how an attempt ended
│   ├── Transient           try again later, on the retry budget
│   │   └── Throttled       the provider's quota, not the job: no retry is charged
│   ├── Permanent           no retry can help
│   └── NotPerformed        an effect function: the outside call certainly did not happen
├── EffectError             an effect cannot go on; the job is buried or the attempt given up
│   ├── EffectMismatch      other arguments under a recorded key
│   ├── EffectUnknown       an intent without a result that must not be repeated
│   └── NotRecordable       a result that is not JSON or is too large
├── HandlersRefused         a module or a handler that cannot be used
├── LeaseLost               this attempt no longer holds the job
├── CallLate                a call's thread came too late for it to begin now
├── JsonRefused             text that is not the JSON we keep
├── TooLarge                a value whose JSON text is over its limit
├── Unstorable              values that PostgreSQL does not take
├── Refused                 a request that cannot be carried out, with a problem slug
├── FailpointRaised         a test asked for an error at this point
└── DependencyAway          PostgreSQL or the broker does not answer
    ├── DatabaseAway
    │   └── SharedSession   a pooler hands our sessions to others: locks and listening do not work
    └── BrokerAway
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class OutlastError(Exception):
    """The root of everything Outlast raises."""


class HandlerError(OutlastError):
    """What a handler raises to say how its attempt ended."""


class Transient(HandlerError):
    """The attempt failed in a way that may pass.

    `retry_after` is the least number of seconds to wait, as a provider asked for it.
    """

    def __init__(self, message: str = "transient failure", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Throttled(Transient):
    """The provider's quota is used up. The job waits and no retry is charged."""


class Permanent(HandlerError):
    """No retry can help: the job is buried as `permanent_error`."""


class NotPerformed(HandlerError):
    """Raised by an effect function that knows its outside call did not happen."""


class HandlersRefused(OutlastError):
    """A module or a handler cannot be used as it is declared."""


class EffectError(OutlastError):
    """An effect cannot go on."""


class EffectMismatch(EffectError):
    """The key is on record with other arguments: the job is buried as `effect_mismatch`."""


class EffectUnknown(EffectError):
    """Nobody knows whether the effect happened: the job is buried as `effect_unknown`."""


class NotRecordable(EffectError):
    """The result of an effect is not JSON, or larger than `MAX_EFFECT_BYTES`."""


class LeaseLost(OutlastError):
    """This attempt no longer holds the job; nothing it writes counts."""


class CallLate(OutlastError):
    """A call's thread was so long in coming that the call may no longer begin; it did not."""


class JsonRefused(OutlastError):
    """The text is not the JSON we keep; `pointer` (RFC 6901) says where."""

    def __init__(self, why: str, pointer: str = "") -> None:
        super().__init__(f"{why} at {pointer or '/'}")
        self.why = why
        self.pointer = pointer


class TooLarge(OutlastError):
    """The JSON text of a value is over its limit; sizes in bytes of UTF-8."""

    def __init__(self, size: int, size_max: int) -> None:
        super().__init__(f"{size} bytes or more, {size_max} at most")


class Unstorable(OutlastError):
    """PostgreSQL does not take these values, however often they are sent."""


class Refused(OutlastError):
    """A request that cannot be carried out.

    `code` is the problem's slug, `status` its HTTP status, `errors` a list of
    `{"pointer": RFC 6901, "detail": text}`, `extra` further members of the problem document.
    """

    def __init__(
        self,
        code: str,
        status: int,
        detail: str,
        *,
        errors: Sequence[Mapping[str, str]] = (),
        extra: Mapping[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.status = status
        self.detail = detail
        self.errors = list(errors)
        self.extra = dict(extra or {})
        self.retry_after = retry_after


class FailpointRaised(OutlastError):
    """A test asked for an error at this point; nothing in the product expects it."""


class DependencyAway(OutlastError):
    """A server we need does not answer. `setting` is where its address comes from."""

    setting = "OUTLAST_DATABASE_URL"


class DatabaseAway(DependencyAway):
    """PostgreSQL does not answer, refuses connections, or cut this one."""


class SharedSession(DatabaseAway):
    """A pooler in transaction mode stands between: no lock and no listening survives there."""


class BrokerAway(DependencyAway):
    """The broker does not answer or refuses the command."""

    setting = "OUTLAST_REDIS_URL"
