"""An effect as a handler wishes for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.domain.states import Policy
from workers.handling.calling import Function
from workers.handling.roundtrip import Adapter


@dataclass(frozen=True, slots=True)
class Wish:
    """One wish of the handler. `digest` is the fingerprint of `args`, `adapter` the type of the result."""

    key: str
    function: Function
    args: tuple[Any, ...]
    policy: Policy
    reconcile: Function | None
    digest: bytes
    adapter: Adapter
