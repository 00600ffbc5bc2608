"""Handlers as they should not be written: each does one thing that a worker must survive, or end as designed."""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from outlast import Context, SyncContext, task
from tests.handlers.steps import until_exists, write_line

SECRET = "hunter-2-in-the-url"
LONG_CHARS = 20_000_000
VAST_CHARS = 200_000_000
FRAMES = 5_000
GROWN_BYTES = 200 * 1024 * 1024


class Deed(BaseModel):
    how: str
    journal: str = ""
    seconds: float = 0


class Shape(BaseModel):
    total: int


class UnreadableError(Exception):
    def __str__(self) -> str:
        raise SystemExit(0)


class Stray(BaseException):
    """No `Exception`."""


def circle() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


async def forgotten() -> int:
    return 1


RESULTS: dict[str, Callable[[], Any]] = {
    "nan": lambda: {"x": [float("nan")]},
    "circular": circle,
    "bytes": lambda: b"\xff\xfe",
    "surrogate": lambda: "\ud800",
    "object": object,
    "endless": itertools.count,
    "coroutine": forgotten,
    "vast": lambda: "x" * VAST_CHARS,
    "long": lambda: list(range(1_000_000)),
}


@task("bad.result")
async def result(ctx: Context, deed: Deed) -> Any:
    return RESULTS[deed.how]()


@task("bad.shape")
async def shape(ctx: Context, deed: Deed) -> Shape:
    return {"sum": 1}  # type: ignore[return-value]  # what is tested


def deep(levels: int) -> None:
    if levels:
        deep(levels - 1)
    raise ValueError("from far down")


def endless(level: int = 0) -> int:
    return endless(level + 1) + 1


def many_frames() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(2 * FRAMES)
    try:
        deep(FRAMES)
    finally:
        sys.setrecursionlimit(limit)


def groups() -> None:
    error: Exception = ValueError("at the bottom")
    for _ in range(FRAMES):
        error = ExceptionGroup[Exception]("more", [error])
    raise error


def throw(kind: type[BaseException], *words: str) -> Callable[[], None]:
    def act() -> None:
        raise kind(*words)

    return act


def much() -> None:
    raise ValueError("long " * (LONG_CHARS // 5))


RAISED: dict[str, Callable[[], Any]] = {
    "sys.exit": lambda: sys.exit(0),
    "KeyboardInterrupt": throw(KeyboardInterrupt),
    "CancelledError": throw(asyncio.CancelledError),
    "GeneratorExit": throw(GeneratorExit),
    "StopIteration": throw(StopIteration),
    "BaseException": throw(Stray, "astray"),
    "RecursionError": endless,
    "MemoryError": throw(MemoryError),
    "secret": throw(ValueError, f"no answer from https://user:{SECRET}@example.com/{SECRET}?key={SECRET}"),
    "NUL": throw(ValueError, "a\0b \ud800"),
    "no UTF-8": b"\xff\xfe".decode,
    "20 MB": much,
    "5,000 frames": many_frames,
    "5,000 groups": groups,
    "unreadable": throw(UnreadableError),
}


@task("bad.raise")
async def raise_(ctx: Context, deed: Deed) -> None:
    RAISED[deed.how]()


@task("bad.raise-in-a-thread")
def raise_in_a_thread(ctx: SyncContext, deed: Deed) -> None:
    RAISED[deed.how]()


async def leave() -> None:
    sys.exit(0)


LEFT: set[asyncio.Future[Any]] = set()


async def leave_an_exit_behind(ctx: Context, deed: Deed) -> None:
    LEFT.add(asyncio.create_task(leave()))
    await asyncio.sleep(0)


async def stop_the_loop(ctx: Context, deed: Deed) -> None:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)


async def close_the_pool(ctx: Context, deed: Deed) -> None:
    await asyncio.get_running_loop().shutdown_default_executor()


async def leave_things_running(ctx: Context, deed: Deed) -> None:
    async def stubborn() -> None:
        while True:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                continue

    LEFT.add(asyncio.create_task(stubborn()))
    threading.Thread(target=threading.Event().wait, daemon=False).start()
    LEFT.add(asyncio.get_running_loop().run_in_executor(ThreadPoolExecutor(1), threading.Event().wait))


async def change_the_process(ctx: Context, deed: Deed) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    print("to stdout", "x" * 100_000)
    sys.stdout.close()


def write_end(journal: str, copy: int) -> None:
    """Writes how the copy ended; a copy that gets here writes that."""
    write_line(journal, "copy", os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) if copy else "goes on")


async def fork_and_return(ctx: Context, deed: Deed) -> None:
    if pid := os.fork():
        write_end(deed.journal, pid)


async def fork_and_await(ctx: Context, deed: Deed) -> None:
    pid = os.fork()
    await asyncio.sleep(0)
    write_end(deed.journal, pid)


DONE: dict[str, Callable[[Context, Deed], Awaitable[None]]] = {
    "leave an exit behind": leave_an_exit_behind,
    "stop the loop": stop_the_loop,
    "close the pool": close_the_pool,
    "leave things running": leave_things_running,
    "change the process": change_the_process,
    "fork and return": fork_and_return,
    "fork and await": fork_and_await,
}


@task("bad.do")
async def do(ctx: Context, deed: Deed) -> int:
    """Does it and succeeds; the process it ran in."""
    await DONE[deed.how](ctx, deed)
    return os.getpid()


@task("bad.fork-in-a-thread")
def fork_in_a_thread(ctx: SyncContext, deed: Deed) -> int:
    pid = os.fork()
    if not pid:
        ctx.progress(1, 1)
    write_end(deed.journal, pid)
    return os.getpid()


@task("bad.stubborn", timeout_seconds=0.5, max_retries=0)
async def stubborn(ctx: Context, deed: Deed) -> None:
    """Swallows its cancellation until the file appears."""
    while True:
        try:
            return await until_exists(Path(deed.journal))
        except asyncio.CancelledError:
            continue


def spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def hold_the_interpreter(seconds: float) -> None:
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))


@task("bad.block")
async def block(ctx: Context, deed: Deed) -> dict[str, int]:
    """Blocks the event loop, the first time, and then performs an effect."""
    write_line(deed.journal, "start", ctx.attempt)

    async def perform() -> int:
        write_line(deed.journal, "perform", ctx.attempt)
        return ctx.attempt

    if ctx.attempt == 1:
        (spin if deed.how == "spin" else hold_the_interpreter)(deed.seconds)
    return {"attempt": ctx.attempt, "performed": await ctx.effect("perform", perform)}


@task("bad.outlive", timeout_seconds=0.5, max_retries=1)
def outlive(ctx: SyncContext, deed: Deed) -> str:
    """Outlives its time-out the first time, and then tries to go on as if nothing had happened."""
    write_line(deed.journal, "start", ctx.job_id, ctx.attempt)
    late = ctx.attempt == 1
    while late and not Path(f"{deed.journal}.go").exists():
        time.sleep(0.02)
    ctx.effect("pay", lambda: write_line(deed.journal, "pay", ctx.job_id, ctx.attempt))
    return "late" if late else "in time"


@task("bad.grow")
async def grow(ctx: Context, deed: Deed) -> int:
    """Takes memory until it is killed, the first time."""
    if ctx.attempt == 1:
        taken = bytearray(GROWN_BYTES)
        taken[::4096] = b"x" * len(taken[::4096])
        os.kill(os.getpid(), signal.SIGKILL)
    return ctx.attempt
