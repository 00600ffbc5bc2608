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

import asyncpg

from bench.drain import TEXT, submit
from bench.figures import Figure
from bench.line import Line
from bench.stack import BenchStack, audit, running
from workers.dev.embedded import free_port, is_taken

CONNECTIONS = 64
WARM_UP_SECONDS = 1.0
TURN_SECONDS = 1.5  # a machine that slows down slows both
READY_SECONDS = 30.0


async def measure(seconds: float, jobs: int, rounds: int) -> list[Figure]:
    """`rounds` times `seconds` of ours and of the bare one, in turns of a second or two, then `jobs` jobs in batches.

    Raises `RuntimeError` when an answer is not 202, or a job that was answered with it is not on record.
    """
    with running(os.environ, workers=0, handlers="bench.handlers") as stack, _bare() as bare:
        for url in (stack.url, bare):
            await _posts(url, WARM_UP_SECONDS)
        before = await _on_record(stack)
        answered = 0
        ours: list[float] = []
        others: list[float] = []
        batched: list[float] = []
        for _ in range(round(rounds * seconds / TURN_SECONDS)):
            count, rate = await _posts(stack.url, TURN_SECONDS)
            answered += count
            ours.append(rate)
            others.append((await _posts(bare, TURN_SECONDS))[1])
        for _ in range(rounds):
            began = time.perf_counter()
            await submit(stack.url, jobs)
            batched.append(jobs / (time.perf_counter() - began))
        made = await _on_record(stack) - before
        if audit(stack) or made != answered + rounds * jobs:
            raise RuntimeError(f"{answered + rounds * jobs} jobs accepted, {made} on record: no figure counts")
    ratio = statistics.median(one / other for one, other in zip(ours, others, strict=True))
    return [
        Figure("posts_per_s", "durable POSTs a second", statistics.median(ours)),
        Figure("bare_posts_per_s", "FastAPI POSTs a second that store nothing", statistics.median(others)),
        Figure("post_vs_bare_fastapi", "the first as a share of the second", ratio, least=0.65),
        Figure("batch_jobs_per_s", "jobs a second accepted in batches", statistics.median(batched), least=15_000),
    ]


async def _on_record(stack: BenchStack) -> int:
    connection = await asyncpg.connect(stack.settings.database_url.get_secret_value())
    try:
        return await connection.fetchval("SELECT count(*) FROM jobs")
    finally:
        await connection.close()


async def _posts(url: str, seconds: float) -> tuple[int, float]:
    """How many are answered with 202, and that a second, all connections waiting for an answer all the time."""
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
    return sum(counts), sum(counts) / (time.perf_counter() - began)


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
