"""How an attempt ends, as values. `workers.finisher` has one arm for each.

An error travels as `Failure`; it is stored and shown, so its text is cut and carries no input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.domain.states import AttemptEnd, Reason

MESSAGE_CHARS_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, as callers and operators see it.

    `type` is the exception's qualified name, `message` its text cut to 2,000 characters,
    `fingerprint` groups failures of one kind (hex, 16 characters).
    """

    type: str
    message: str
    fingerprint: str

    def document(self) -> dict[str, Any]:
        return {"type": self.type, "message": self.message, "fingerprint": self.fingerprint}


@dataclass(frozen=True, slots=True)
class Done:
    """The handler returned and its result (JSON text) is valid."""

    result: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Run again in `delay_seconds`. `charged` is false when only a quota was waited for."""

    failure: Failure
    delay_seconds: float
    end: AttemptEnd = AttemptEnd.FAILED
    charged: bool = True


@dataclass(frozen=True, slots=True)
class Bury:
    """Stop here: a dead letter with a reason."""

    reason: Reason
    failure: Failure
    end: AttemptEnd = AttemptEnd.FAILED


@dataclass(frozen=True, slots=True)
class Release:
    """Give the job back, nothing charged: a shutdown, or a lease nobody here runs."""

    cause: str


@dataclass(frozen=True, slots=True)
class Gone:
    """The lease is no longer ours (cancelled, rescued): nothing to write."""


Outcome = Done | Retry | Bury | Release | Gone
