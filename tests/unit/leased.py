"""A job in hand, and the lease under which it runs, for tests of what runs it."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID

from app.domain.errors import LeaseLost
from app.domain.leased import LeasedJob

JOB_ID = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
JOB = LeasedJob(
    id=JOB_ID,
    attempt=1,
    tenant="default",
    kind="test.kind",
    queue="default",
    input="{}",
    run_seconds=30.0,
    deadline_binds=False,
    retries=0,
    max_retries=2,
    crashes=0,
    releases=0,
)


def a_job(**changes: Any) -> LeasedJob:
    """The job with some of its facts changed."""
    return JOB._replace(**changes)


class FakeLease:
    """Implements `workers.handling.run_lease.RunLease`. `fresh` stands for a heartbeat that was just answered."""

    def __init__(self, job: LeasedJob = JOB) -> None:
        self.job = job
        self.lost = False
        self.releasing = False
        self.fresh = asyncio.Event()
        self.fresh.set()
        self.waiting = asyncio.Event()
        self.shown: list[dict[str, Any]] = []

    async def may_call(self) -> None:
        self.waiting.set()
        await self.fresh.wait()
        if self.lost:
            raise LeaseLost("the lease is gone")

    def may_call_now(self) -> bool:
        return self.fresh.is_set() and not self.lost

    async def progress(self, json_text: str) -> None:
        self.shown.append(json.loads(json_text))
