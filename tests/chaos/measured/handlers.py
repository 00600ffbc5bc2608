"""The handlers of measured runs: nothing, a wait, a failure, the end of the process."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

from pydantic import BaseModel

from outlast import Context, Transient, task

NOTHING, HOLD, FAIL_ONCE, DIE = "measured.nothing", "measured.hold", "measured.fail_once", "measured.die"

PLAIN: dict[str, Any] = {}


class Given(BaseModel):
    """`seconds` is how long to hold, in the first attempt only when `once`."""

    seconds: float = 0
    once: bool = False


class Answer(BaseModel):
    attempt: int


@task(NOTHING, timeout_seconds=60)
async def nothing(ctx: Context, given: Given) -> Answer:
    return Answer(attempt=ctx.attempt)


@task(HOLD, timeout_seconds=120)
async def hold(ctx: Context, given: Given) -> Answer:
    if ctx.attempt == 1 or not given.once:
        await asyncio.sleep(given.seconds)
    return Answer(attempt=ctx.attempt)


@task(FAIL_ONCE, timeout_seconds=60, max_retries=1)
async def fail_once(ctx: Context, given: Given) -> Answer:
    if ctx.attempt == 1:
        raise Transient("asked to fail")
    return Answer(attempt=ctx.attempt)


@task(DIE, timeout_seconds=60)
async def die(ctx: Context, given: Given) -> Answer:
    os.kill(os.getpid(), signal.SIGKILL)
    return Answer(attempt=ctx.attempt)
