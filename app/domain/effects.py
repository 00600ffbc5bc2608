"""What the record of effects answers, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.domain.states import EffectState, Policy


class Grant(StrEnum):
    GRANTED = "granted"
    REFUSED = "refused"
    FENCED = "fenced"


@dataclass(frozen=True, slots=True)
class EffectRow:
    """An effect as it is on record. `result` is JSON text, `attempt` wrote the intent."""

    key: str
    attempt: int
    policy: Policy
    args_digest: bytes
    state: EffectState
    result: str | None
    calls: int


@dataclass(frozen=True, slots=True)
class IntentAnswer:
    """`GRANTED`: call. `FENCED`: the lease is gone. `REFUSED`: `row` says what is there."""

    grant: Grant
    row: EffectRow | None = None
