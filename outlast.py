"""What handler authors import.

    from outlast import Context, Permanent, Transient, task

    @task("ticket.triage", timeout_seconds=120, max_retries=2)
    async def triage(ctx: Context, ticket: Ticket) -> Triage: ...

`from outlast.testing import run` runs a handler in memory.
"""

from __future__ import annotations

import sys

from app.domain.errors import (
    EffectError,
    EffectMismatch,
    EffectUnknown,
    FailpointRaised,
    HandlerError,
    HandlersRefused,
    LeaseLost,
    NotPerformed,
    NotRecordable,
    OutlastError,
    Permanent,
    Throttled,
    Transient,
)
from app.domain.states import Policy
from workers.handling import testing
from workers.handling.context import Context
from workers.handling.sync_context import SyncContext
from workers.registry import task

__all__ = [
    "Context",
    "EffectError",
    "EffectMismatch",
    "EffectUnknown",
    "FailpointRaised",
    "HandlerError",
    "HandlersRefused",
    "LeaseLost",
    "NotPerformed",
    "NotRecordable",
    "OutlastError",
    "Permanent",
    "Policy",
    "SyncContext",
    "Throttled",
    "Transient",
    "task",
    "testing",
]

# This is a module, not a package: the import system finds `outlast.testing` here.
sys.modules["outlast.testing"] = testing
