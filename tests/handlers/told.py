"""Handlers that do, attempt by attempt, what a test tells them: it writes the words into a file of that attempt.

Each act is a line in the journal, with the name of the job and the attempt. An attempt waits until it has its words.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from outlast import Context, Permanent, SyncContext, Transient, task
from tests.handlers.steps import until_exists, write_line

LATER_SECONDS = 600.0
GO = ".go"
POLL_SECONDS = 0.02


class Told(BaseModel):
    journal: str
    name: str


def words_path(journal: str, name: str, attempt: int) -> Path:
    return Path(f"{journal}.{name}.{attempt}")


def tell(journal: str | Path, name: str, attempt: int, words: str) -> None:
    """Tells an attempt what to do, whole or not at all."""
    path = words_path(str(journal), name, attempt)
    draft = Path(f"{path}.draft")
    draft.write_text(words)
    draft.rename(path)


def go(journal: str | Path, name: str, attempt: int) -> None:
    """Lets an attempt that rests go on."""
    Path(f"{words_path(str(journal), name, attempt)}{GO}").touch()


WAYS_TO_DIE: dict[str, Callable[[], Any]] = {
    "exit-137": lambda: os._exit(137),
    "exit-0": lambda: os._exit(0),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": lambda: ctypes.string_at(0),
}


def end(word: str) -> None:
    """Raises, or dies, as told; else does nothing."""
    if word == "later":
        raise Transient("as told", retry_after=LATER_SECONDS)
    if word == "again":
        raise Transient("as told")
    if word == "bury":
        raise Permanent("as told")
    if word in WAYS_TO_DIE:
        WAYS_TO_DIE[word]()


@task("told.job", timeout_seconds=120, max_retries=5)
async def told(ctx: Context, orders: Told) -> dict[str, int]:
    """`pay` is an effect, `show` progress, `rest` waits for `go`; the others, and the last one, end the attempt.

    Told what to do when it is cancelled, it swallows that and goes on.
    """
    me = orders.name, ctx.attempt
    write_line(orders.journal, "start", *me, os.getpid())

    async def pay() -> int:
        write_line(orders.journal, "pay", *me)
        return ctx.attempt

    path = words_path(orders.journal, *me)
    try:
        await until_exists(path)
    except asyncio.CancelledError:
        write_line(orders.journal, "cancelled", *me)
        if not path.exists():
            raise
    for word in path.read_text().split():
        if word == "pay":
            await ctx.effect("pay", pay)
        elif word == "show":
            await ctx.progress(1, 2, f"attempt {ctx.attempt}")
        elif word == "rest":
            await until_exists(Path(f"{path}{GO}"))
        end(word)
    write_line(orders.journal, "returned", *me)
    return {"attempt": ctx.attempt}


@task("told.thread", timeout_seconds=120, max_retries=5)
def told_in_a_thread(ctx: SyncContext, orders: Told) -> dict[str, int]:
    """The same in a thread, which nothing can cancel."""
    me = orders.name, ctx.attempt
    write_line(orders.journal, "start", *me, os.getpid())

    def pay() -> int:
        write_line(orders.journal, "pay", *me)
        return ctx.attempt

    path = words_path(orders.journal, *me)
    while not path.exists():
        time.sleep(POLL_SECONDS)
    for word in path.read_text().split():
        if word == "pay":
            ctx.effect("pay", pay)
        elif word == "show":
            ctx.progress(1, 2, f"attempt {ctx.attempt}")
        end(word)
    return {"attempt": ctx.attempt}
