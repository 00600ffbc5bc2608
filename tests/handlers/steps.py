"""Handlers that write down what they do and go on when a test says so.

Each call appends a line to `journal` (a file of the test, never read by the product); a step named in `hold` waits
until the file `<journal>.<step>` exists.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from pydantic import BaseModel, Field

from outlast import Context, Permanent, Transient, task

POLL_SECONDS = 0.02


class Plan(BaseModel):
    journal: str
    steps: list[str] = Field(default_factory=list)
    hold: list[str] = Field(default_factory=list)
    sleep_seconds: float = 0
    fail_times: int = 0
    fatal: bool = False


class Report(BaseModel):
    steps: list[int]
    attempt: int


def write_line(journal: str, *words: object) -> None:
    with Path(journal).open("a") as file:
        file.write(" ".join(map(str, words)) + "\n")


async def until_exists(path: Path) -> None:
    while not path.exists():
        await asyncio.sleep(POLL_SECONDS)


@task("test.steps", timeout_seconds=120)
async def steps(ctx: Context, plan: Plan) -> Report:
    """Performs the steps as effects, one after the other."""
    write_line(plan.journal, "start", ctx.job_id, ctx.attempt, os.getpid())

    async def perform(step: str) -> int:
        write_line(plan.journal, "perform", ctx.job_id, step, ctx.attempt)
        return os.getpid()

    done: list[int] = []
    for step in plan.steps:
        if step in plan.hold:
            write_line(plan.journal, "hold", ctx.job_id, step, ctx.attempt)
            await until_exists(Path(f"{plan.journal}.{step}"))
        done.append(await ctx.effect(step, perform, step))
    if plan.sleep_seconds:
        await asyncio.sleep(plan.sleep_seconds)
    return Report(steps=done, attempt=ctx.attempt)


@task("test.flaky", timeout_seconds=60)
async def flaky(ctx: Context, plan: Plan) -> Report:
    """Fails `fail_times` times, for good when `fatal`."""
    write_line(plan.journal, "start", ctx.job_id, ctx.attempt, os.getpid())
    if plan.fatal:
        raise Permanent("asked to fail for good")
    if ctx.attempt <= plan.fail_times:
        raise Transient(f"asked to fail, time {ctx.attempt}")
    return Report(steps=[], attempt=ctx.attempt)


@task("test.die", timeout_seconds=60)
async def die(ctx: Context, plan: Plan) -> Report:
    """Takes its process down at once."""
    write_line(plan.journal, "start", ctx.job_id, ctx.attempt, os.getpid())
    os._exit(137)
