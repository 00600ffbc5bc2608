"""The handlers that are measured."""

from __future__ import annotations

import asyncio
import time

from pydantic import BaseModel

from outlast import Context, task


class Payload(BaseModel):
    n: int
    text: str


class Answer(BaseModel):
    n: int


@task("bench.noop", timeout_seconds=60)
async def noop(ctx: Context, payload: Payload) -> Answer:
    """Does nothing but be validated on both sides."""
    return Answer(n=payload.n)


class Stamped(BaseModel):
    at: float


@task("bench.stamp", timeout_seconds=60)
async def stamp(ctx: Context, payload: Payload) -> Stamped:
    """When it began, in seconds since 1970 by the clock of the machine."""
    return Stamped(at=time.time())


async def perform(step: str) -> str:
    return step


@task("bench.three", timeout_seconds=60)
async def three(ctx: Context, payload: Payload) -> Answer:
    """Performs three effects that do nothing."""
    for step in ("one", "two", "three"):
        await ctx.effect(step, perform, step)
    return Answer(n=payload.n)


@task("bench.one", timeout_seconds=60)
async def one(ctx: Context, payload: Payload) -> Answer:
    """Performs one effect that does nothing."""
    await ctx.effect("one", perform, "one")
    return Answer(n=payload.n)


@task("bench.hold", timeout_seconds=120)
async def hold(ctx: Context, payload: Payload) -> Answer:
    """Performs two effects and waits for its first worker to be taken away."""
    await ctx.effect("one", perform, "one")
    await ctx.effect("two", perform, "two")
    if ctx.attempt == 1:
        await asyncio.sleep(60)
    return Answer(n=ctx.attempt)
