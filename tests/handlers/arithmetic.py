"""The least handler there can be."""

from __future__ import annotations

from pydantic import BaseModel

from outlast import Context, task


class Number(BaseModel):
    value: int


@task("test.double")
async def double(ctx: Context, number: Number) -> Number:
    return Number(value=2 * number.value)
