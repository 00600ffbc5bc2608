"""Handlers that let go of what they were trusted with, each in another way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import httpx
from pydantic import BaseModel, Field

from outlast import Context, SyncContext, Transient, task


class Trust(BaseModel):
    how: str
    password: str = ""
    note: str = ""
    url: str = ""
    nested: dict[str, list[str]] = Field(default_factory=dict)


class Number(BaseModel):
    n: int


async def raise_text(ctx: Context, trust: Trust) -> None:
    raise ValueError(f"cannot use {trust.password}")


async def raise_from(ctx: Context, trust: Trust) -> None:
    try:
        {}[trust.note]
    except KeyError as missing:
        raise Transient(f"try {trust.password} again") from missing


async def raise_url(ctx: Context, trust: Trust) -> None:
    raise ValueError(f"GET https://u:{trust.password}@example.com/{trust.note}?key={trust.password} was refused")


async def ask_over_http(ctx: Context, trust: Trust) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{trust.url}/{trust.password}", params={"key": trust.note})
    answer.raise_for_status()


async def validate(ctx: Context, trust: Trust) -> None:
    Number.model_validate({"n": trust.password})


async def fail_in_an_effect(ctx: Context, trust: Trust) -> None:
    async def pay(password: str) -> None:
        raise ValueError(password)

    await ctx.effect("pay", pay, trust.password, policy="at_most_once")


async def tell_progress(ctx: Context, trust: Trust) -> None:
    await ctx.progress(1, 2, trust.note)


async def leave_a_task(ctx: Context, trust: Trust) -> None:
    async def fail() -> None:
        raise ValueError(trust.password)

    task = asyncio.create_task(fail())
    await asyncio.sleep(0.05)
    del task


async def leave_a_thread(ctx: Context, trust: Trust) -> None:
    def fail() -> None:
        raise ValueError(trust.password)

    thread = threading.Thread(target=fail)
    thread.start()
    while thread.is_alive():  # a thread has no event
        await asyncio.sleep(0.01)


async def leave_an_object(ctx: Context, trust: Trust) -> None:
    class Closing:
        def __del__(self) -> None:
            raise ValueError(trust.password)

    Closing()


async def block_the_loop(ctx: Context, trust: Trust) -> None:
    threading.Event().wait(1.5)


WAYS: dict[str, Callable[[Context, Trust], Awaitable[None]]] = {
    "raise text": raise_text,
    "raise from": raise_from,
    "raise url": raise_url,
    "ask over http": ask_over_http,
    "validate": validate,
    "fail in an effect": fail_in_an_effect,
    "tell progress": tell_progress,
    "leave a task": leave_a_task,
    "leave a thread": leave_a_thread,
    "leave an object": leave_an_object,
    "block the loop": block_the_loop,
}


@task("trust.tell", timeout_seconds=30, max_retries=1)
async def tell(ctx: Context, trust: Trust) -> dict[str, str]:
    await WAYS[trust.how](ctx, trust)
    return {"given": trust.note}


@task("trust.tell-in-a-thread", timeout_seconds=30)
def tell_in_a_thread(ctx: SyncContext, trust: Trust) -> None:
    raise ValueError(trust.password)


@task("trust.return", timeout_seconds=30)
async def return_(ctx: Context, trust: Trust) -> Number:
    return {"n": trust.password}  # type: ignore[return-value]  # what is tested


@task("trust.log", timeout_seconds=60)
async def log(ctx: Context, trust: Trust) -> None:
    """Says who it is, again and again, also from a thread."""
    for _ in range(5):
        ctx.log.info("said", said_by=str(ctx.job_id))
        await asyncio.sleep(0.01)
        await asyncio.to_thread(ctx.log.info, "said", said_by=str(ctx.job_id))
