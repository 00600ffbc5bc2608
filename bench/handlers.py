"""The handlers that are measured."""

from __future__ import annotations

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
