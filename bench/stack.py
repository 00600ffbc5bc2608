"""A stack of its own for a measurement: `outlast dev` in a temporary folder, ended with the `with` block."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
from pydantic import SecretStr
from redis.asyncio import Redis

from app.settings import Settings

READY_SECONDS = 60
COUNTS = """
SELECT (SELECT count(*) FROM jobs) AS jobs, (SELECT count(*) FROM outcomes WHERE state = 'done') AS done,
  (SELECT count(*) FROM dead_letters) AS dead
"""


@dataclass(frozen=True)
class BenchStack:
    """Where the stack is. `exports` are the variables its clients need, `pid` is its first process."""

    url: str
    settings: Settings
    exports: Mapping[str, str]
    pid: int


@contextmanager
def running(environment: Mapping[str, str], *, workers: int, handlers: str) -> Iterator[BenchStack]:
    """Starts the stack with `environment` and waits for its ready line. Raises `RuntimeError` when there is none."""
    with (
        tempfile.TemporaryDirectory(prefix="outlast-bench-") as folder,
        _started(folder, environment, workers=workers, handlers=handlers) as stack,
    ):
        yield stack


@asynccontextmanager
async def prepared(
    environment: Mapping[str, str], prepare: Callable[[BenchStack], Awaitable[None]], *, workers: int, handlers: str
) -> AsyncIterator[BenchStack]:
    """As `running`; before its workers start, `prepare` has been done, and the servers have been started again."""
    with tempfile.TemporaryDirectory(prefix="outlast-bench-") as folder:
        with _started(folder, environment, workers=0, handlers=handlers) as stack:
            await prepare(stack)
        with _started(folder, environment, workers=workers, handlers=handlers) as stack:
            yield stack


@contextmanager
def _started(folder: str, environment: Mapping[str, str], *, workers: int, handlers: str) -> Iterator[BenchStack]:
    words = ["dev", "--port", "0", "--data", folder, "--workers", str(workers), "--handlers", handlers]
    command = [sys.executable, "-m", "workers.main", *words]
    with Path(folder, "log").open("ab") as log:
        process = subprocess.Popen(command, env=dict(environment), stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith("ready "):
                raise RuntimeError(f"outlast dev did not start: {Path(folder, 'log').read_text()[-2000:]}")
            ours = {name: value for name, value in environment.items() if name.startswith("OUTLAST_")}
            exports = {**ours, **_exports(Path(folder, "env").read_text())}
            urls = {name: exports.get(f"OUTLAST_{name.upper()}") for name in ("database_url", "redis_url")}
            settings = Settings.model_validate({name: SecretStr(url) for name, url in urls.items() if url})
            yield BenchStack(line.split()[1], settings, exports, process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(READY_SECONDS)


def redis_of(stack: BenchStack) -> Any:
    """A client of the stack's Redis; untyped, as its methods' `**kwargs` are."""
    return Redis.from_url(stack.settings.redis_url.get_secret_value())  # pyright: ignore[reportUnknownMemberType]


async def refuse_losses(stack: BenchStack, jobs: int) -> None:
    """Raises `RuntimeError` unless `jobs` jobs are on record, all of them done, and the audit finds nothing."""
    connection = await asyncpg.connect(stack.settings.database_url.get_secret_value())
    try:
        told = dict(await connection.fetchrow(COUNTS) or {})
    finally:
        await connection.close()
    if audit(stack) or told != {"jobs": jobs, "done": jobs, "dead": 0}:
        raise RuntimeError(f"of {jobs} jobs there are {told}: no figure of this run counts")


def audit(stack: BenchStack) -> int:
    """`outlast audit` on the result; its exit code."""
    command = [sys.executable, "-m", "workers.main", "audit"]
    finished = subprocess.run(command, env={**os.environ, **stack.exports}, check=False, capture_output=True, text=True)
    print(f"audit: exit {finished.returncode} {finished.stdout.strip()} {finished.stderr.strip()}")
    return finished.returncode


def _exports(text: str) -> dict[str, str]:
    pairs = (line.removeprefix("export ").partition("=") for line in text.splitlines() if line.startswith("export "))
    return {name: value.strip("'\"") for name, _, value in pairs}
