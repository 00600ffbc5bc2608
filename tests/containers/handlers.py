"""The jobs of these tests: errands, each filing of which is an effect at the help desk."""

from __future__ import annotations

import asyncio
import os
from functools import cache

import httpx
from pydantic import BaseModel

from outlast import Context, task

ANSWER_SECONDS = 10.0


class Errand(BaseModel):
    name: str
    effects: int = 1
    pause_seconds: float = 0


@cache
def desk() -> httpx.AsyncClient:
    """One connection pool a process: these jobs are short, and there are many."""
    return httpx.AsyncClient(base_url=os.environ["OUTLAST_SINK_URL"], timeout=ANSWER_SECONDS, verify=False)


async def file(ticket: str, *, idempotency_key: str) -> str:
    answer = await desk().post("/filings", json={"ticket": ticket}, headers={"Idempotency-Key": idempotency_key})
    return answer.raise_for_status().json()["filing_id"]


@task("container.errand", timeout_seconds=60)
async def errand(ctx: Context, order: Errand) -> list[str]:
    """Files `<name>/<n>` for each of its effects, and rests after it."""
    filings: list[str] = []
    for number in range(order.effects):
        filings.append(await ctx.effect(f"file-{number}", file, f"{order.name}/{number}"))
        await asyncio.sleep(order.pause_seconds)
    return filings
