"""The next release of `tests.handlers.arithmetic`: it wants more of an input."""

from __future__ import annotations

from pydantic import BaseModel, Field

from outlast import Context, task


class Number(BaseModel):
    value: int = Field(lt=100)


@task("test.double", version="2")
async def double(ctx: Context, number: Number) -> Number:
    return Number(value=2 * number.value)
