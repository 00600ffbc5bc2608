"""Durable `POST /v1/jobs` a second on 64 connections and one API process, beside one that stores nothing."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.drain import TEXT
from bench.figures import Figure
from bench.line import Line
from bench.stack import running
from workers.dev.embedded import free_port, is_taken

CONNECTIONS = 64
WARM_UP_SECONDS = 1.0
READY_SECONDS = 30.0


async def measure(seconds: float, rounds: int) -> list[Figure]:
    """Windows of `seconds`, ours and the bare one in turn. Raises `RuntimeError` for an answer that is not 202."""
    with running(os.environ, workers=0, handlers="bench.handlers") as stack, _bare() as bare:
        ours: list[float] = []
        others: list[float] = []
        for url in (stack.url, bare):
            await posts_per_second(url, WARM_UP_SECONDS)
        for _ in range(rounds):
            ours.append(await posts_per_second(stack.url, seconds))
            others.append(await posts_per_second(bare, seconds))
    rate, bare_rate = statistics.median(ours), statistics.median(others)
    return [
        Figure("posts_per_s", "durable POSTs a second", rate),
        Figure("bare_posts_per_s", "FastAPI POSTs a second that store nothing", bare_rate),
        Figure("post_vs_bare_fastapi", "the first as a share of the second", rate / bare_rate, least=0.65),
    ]


async def posts_per_second(url: str, seconds: float) -> float:
    """How many are answered with 202, all connections waiting for an answer all the time."""
    began = time.perf_counter()

    async def call(nth: int) -> int:
        answered = 0
        async with Line(url) as line:
            while time.perf_counter() < began + seconds:
                asked = {"kind": "bench.noop", "input": {"n": nth, "text": TEXT}}
                status, answer = await line.post("/v1/jobs", json.dumps(asked).encode())
                if status != 202:
                    raise RuntimeError(f"a submit was answered with {status}: {answer[:200]!r}")
                answered += 1
        return answered

    counts = await asyncio.gather(*(call(nth) for nth in range(CONNECTIONS)))
    return sum(counts) / (time.perf_counter() - began)


@contextmanager
def _bare() -> Iterator[str]:
    port = free_port()
    words = ["bench.bare:app", "--port", str(port), "--no-access-log", "--log-level", "warning", "--loop", "uvloop"]
    process = subprocess.Popen([sys.executable, "-m", "uvicorn", *words])
    try:
        _await_port(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(READY_SECONDS)


def _await_port(port: int) -> None:
    end = time.monotonic() + READY_SECONDS
    while not is_taken(port):
        if time.monotonic() > end:
            raise RuntimeError("the bare server did not start")
        time.sleep(0.05)
