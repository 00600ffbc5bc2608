"""Handlers whose effects reach the help desk, which honours keys, or a file, which has no idea of them."""

from __future__ import annotations

from pathlib import Path

import httpx
from pydantic import BaseModel, Field

from outlast import Context, NotPerformed, task
from tests.handlers.steps import write_line


class Order(BaseModel):
    desk: str = ""
    journal: str = ""
    effects: list[str] = Field(default_factory=list)
    policy: str = "repeatable"


async def file_at_desk(desk: str, ticket: str, *, idempotency_key: str) -> str:
    async with httpx.AsyncClient(base_url=desk, timeout=20, verify=False) as client:
        answer = await client.post("/filings", json={"ticket": ticket}, headers={"Idempotency-Key": idempotency_key})
    answer.raise_for_status()
    return answer.json()["filing_id"]


async def write_in_file(journal: str, effect: str, *, idempotency_key: str) -> str:
    write_line(journal, "perform", effect, idempotency_key)
    return f"{effect} performed"


@task("pay.at-desk", timeout_seconds=60)
async def at_desk(ctx: Context, order: Order) -> list[str]:
    """The desk's answer for each effect."""
    return [await ctx.effect(key, file_at_desk, order.desk, f"{ctx.job_id} {key}") for key in order.effects]


@task("pay.in-file", timeout_seconds=60)
async def in_file(ctx: Context, order: Order) -> list[str]:
    """As `pay.at-desk`. Once the file `<journal>.turned` exists, the code does the same in another order."""
    keys = reversed(order.effects) if Path(f"{order.journal}.turned").exists() else order.effects
    policy = "at_most_once" if order.policy == "at_most_once" else "repeatable"
    return [await ctx.effect(key, write_in_file, order.journal, key, policy=policy) for key in keys]


@task("pay.asked", timeout_seconds=60)
async def asked(ctx: Context, order: Order) -> list[str]:
    """Looks into the file whether an effect in doubt has happened."""

    async def look(journal: str, effect: str, *, idempotency_key: str) -> str:
        found = Path(journal).read_text() if Path(journal).exists() else ""
        if f"perform {effect} {idempotency_key}" not in found:
            raise NotPerformed(f"{effect} is not in the file")
        return f"{effect} found"

    return [
        await ctx.effect(key, write_in_file, order.journal, key, policy="reconcile", reconcile=look)
        for key in order.effects
    ]


@task("pay.twice", timeout_seconds=60)
async def twice(ctx: Context, order: Order) -> None:
    """Two effects under one name."""

    async def write_more(journal: str, effect: str, *, idempotency_key: str) -> str:
        return await write_in_file(journal, f"{effect} more", idempotency_key=idempotency_key)

    [key] = order.effects
    await ctx.effect(key, write_in_file, order.journal, key)
    await ctx.effect(key, write_more, order.journal, key)
