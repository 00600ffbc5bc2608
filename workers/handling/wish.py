"""An effect as a handler wishes for it."""

from __future__ import annotations

from typing import Any, NamedTuple

from app.domain.errors import Permanent
from app.domain.states import Policy
from workers.handling.calling import Function
from workers.handling.roundtrip import Adapter

KEY_CHARS_MAX = 200


class Wish(NamedTuple):
    """One wish of the handler. `digest` is the fingerprint of `args`, `adapter` the type of the result."""

    key: str
    function: Function
    args: tuple[Any, ...]
    policy: Policy
    reconcile: Function | None
    digest: bytes
    adapter: Adapter


def refuse_unusable(key: str, policy: Policy, reconcile: Function | None) -> None:
    """Raises `Permanent` for an effect that no handler can have meant."""
    if (policy is Policy.RECONCILE) != (reconcile is not None):
        raise Permanent(f"effect {key}: the policy 'reconcile' and a function to reconcile with belong together")
    if not 0 < len(key) <= KEY_CHARS_MAX or not key.isprintable():
        raise Permanent(f"an effect's key has 1 to {KEY_CHARS_MAX} printable characters")
